"""What the record of a first non-finite value tells: which kind of breakdown it was.

An operation breaks in one of few ways. It gets an argument outside of its domain (log of 0), all of
its row is masked, its result leaves the range of its number type, or what it gets was broken
before: the batch, the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from traindx.analysis.recordings.observations import (
    count,
    extreme,
    is_half,
    is_integer,
    operation,
    place_words,
    processes_of,
    summary_words,
)
from traindx.model.findings import Evidence, Strength, cite_record
from traindx.model.recording import NonFinite, Process, Summary
from traindx.model.run import Run

HUGE = 1e10  # sums of products of smaller numbers stay within the range of float32
EXP_LIMIT = 88.0  # of float32: e^88.7 overflows
TINY = 1e-37  # 1 / x of a smaller number overflows
SHOWN = 3  # inputs told

SOFTMAXES = frozenset(
    {"softmax", "log_softmax", "safe_softmax", "scaled_dot_product_attention",
     "scaled_dot_product_flash_attention_for_cpu", "multi_head_attention_forward"}
)  # fmt: skip
CLASS_LOSSES = frozenset(
    {"nll_loss", "nll_loss2d", "nll_loss_nd", "nll_loss_forward", "nll_loss2d_forward",
     "cross_entropy", "cross_entropy_loss"}
)  # fmt: skip
_LIBRARY_FUNCTIONS = ("Checkpoint", "Compiled", "DDP", "Reduce", "Gather", "AllReduce", "_All")


class BreakdownKind(Enum):
    """How a value came to be no number."""

    DATA = "data"
    WEIGHTS = "weights"
    MASKED = "masked"
    IGNORED = "ignored"
    HALF = "half"
    EDGE = "edge"
    OVERFLOW = "overflow"
    CUSTOM = "custom"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The first non-finite value of a process, its kind, and what is at the edge, in words."""

    process: Process
    record: NonFinite
    kind: BreakdownKind
    edge: str = ""

    @property
    def is_shown(self) -> bool:
        return self.record.is_exact

    @property
    def why(self) -> str:
        return self.record.why or self.edge

    @property
    def title(self) -> str:
        """Return where the value arose: the operation, its module, the line."""
        record = self.record
        name = operation(record.op) or "an operation"
        inside = f" in {record.module}" if record.module else ""
        kind = f" ({record.module_type})" if record.module_type else ""
        direction = "the gradient of " if record.phase == "backward" else ""
        return f"{direction}{name}{inside}{kind}{place_words(record.place)}"

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return the record, what the operation was given, and the batch that was kept."""
        record, step = self.record, float(self.record.step)
        how = "a replay gave the same" if record.is_exact else "not reproduced exactly"
        says = f"the first NaN or infinity comes from {self.title} ({how})"
        cited = [cite_record(self.process, record.line, says, step=step)]
        told = "; ".join(summary_words(i) for i in record.inputs[:SHOWN])
        if told:
            cited.append(
                cite_record(self.process, record.line, f"its inputs are {told}", step=step)
            )
        if record.kept:
            says = f"the batch is kept in {record.kept}"
            cited.append(cite_record(self.process, record.line, says, step=step))
        return tuple(cited)


def breakdown_of(run: Run) -> Breakdown | None:
    """Return the earliest breakdown of any process that a replay could place."""
    found = [(p, r) for p in processes_of(run) for r in p.nonfinite if r.phase]
    if not found:
        return None
    process, record = min(found, key=lambda pair: (pair[1].step, not pair[1].is_exact))
    return _judge(Breakdown(process, record, BreakdownKind.UNCLEAR))


def _judge(found: Breakdown) -> Breakdown:
    record = found.record
    if record.phase == "data":
        return replace(found, kind=BreakdownKind.DATA)
    if record.phase == "weights":
        return replace(found, kind=BreakdownKind.WEIGHTS)
    name = operation(record.op)
    edge = _edge(name, record)
    largest = max(map(extreme, record.inputs), default=0.0)
    if name in SOFTMAXES and _has_only_minus_infinity(record):
        return replace(
            found, kind=BreakdownKind.MASKED, edge="a row of its input is −inf throughout"
        )
    if name in CLASS_LOSSES and record.inputs and largest < HUGE and not _is_broken(record):
        return replace(found, kind=BreakdownKind.IGNORED, edge="no target of the batch counts")
    if _is_half(name, record, edge):
        return replace(
            found, kind=BreakdownKind.HALF, edge=f"in float16, which ends at 65504{_of(largest)}"
        )
    if edge and largest < HUGE:
        return replace(found, kind=BreakdownKind.EDGE, edge=edge)
    if largest >= HUGE:
        return replace(found, kind=BreakdownKind.OVERFLOW, edge=f"its inputs reach {largest:.3g}")
    if _is_custom(record):
        return replace(found, kind=BreakdownKind.CUSTOM)
    if name in EDGES and not record.inputs and record.why:
        return replace(found, kind=BreakdownKind.EDGE, edge=record.why)
    return found


def _of(largest: float) -> str:
    return f", of inputs up to {largest:.3g}" if largest else ""


def _is_broken(record: NonFinite) -> bool:
    return any(i.nonfinite for i in record.inputs)


def _has_only_minus_infinity(record: NonFinite) -> bool:
    """Infinity above, or NaN, has another reason than a mask."""
    masks = [i for i in record.inputs if i.nonfinite or i.low == float("-inf")]
    told = record.why.replace("−", "-").lower()
    if "-inf" in told or "masked" in told:
        return True
    is_above = any(i.high == float("inf") for i in masks)
    return bool(masks) and not is_above and "nan" not in told


def _is_half(name: str, record: NonFinite, edge: str) -> bool:
    floats = [i for i in record.inputs if not is_integer(i)]
    if not floats or not any(is_half(i) for i in floats):
        return False
    if name in EXPONENTIALS:
        return max(i.high for i in floats) < EXP_LIMIT
    return not edge


def _is_custom(record: NonFinite) -> bool:
    """Built-in functions of autograd carry a number at the end of their names."""
    is_function = record.phase == "backward" and record.op.endswith("Backward")
    return is_function and not record.op.startswith(_LIBRARY_FUNCTIONS)


# --- where operations break -----------------------------------------------------------------------

Judge = Callable[[str, Sequence[Summary], bool], str]


def _edge(name: str, record: NonFinite) -> str:
    """Return what is at the edge of the operation's domain, in words; nothing if none is known."""
    judge = EDGES.get(name)
    floats = [i for i in record.inputs if not is_integer(i) or name in DIVISIONS]
    if judge is None or not floats:
        return ""
    return judge(name, floats, record.phase == "backward")


def _logarithm(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    bottom = -1.0 if name == "log1p" else 0.0
    low = inputs[0].low
    limit = bottom + (TINY if is_backward else 0.0)
    return f"its smallest input is {low:.3g}" if low <= limit else ""


def _root(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    low = inputs[0].low
    is_open = is_backward or name == "rsqrt"
    outside = low <= 0.0 if is_open else low < 0.0
    return f"its smallest input is {low:.3g}" if outside else ""


def _division(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    below = inputs[-1]
    is_near = max(abs(below.low), abs(below.high)) < TINY or below.low <= 0.0 <= below.high
    return f"the divisor holds values from {below.low:.3g} to {below.high:.3g}" if is_near else ""


def _exponential(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    high = max(abs(inputs[0].low), inputs[0].high) if name in TWO_SIDED else inputs[0].high
    return f"its largest input is {high:.3g}" if high > EXP_LIMIT else ""


def _power(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    low = inputs[0].low
    return f"its smallest base is {low:.3g}" if low <= 0.0 else ""


def _within_one(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    low, high = inputs[0].low, inputs[0].high
    outside = low <= -1.0 or high >= 1.0
    return f"its input reaches from {low:.4g} to {high:.4g}" if outside else ""


def _within_unit(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    low, high = inputs[0].low, inputs[0].high
    outside = low <= 0.0 or high >= 1.0
    return f"its input reaches from {low:.4g} to {high:.4g}" if outside else ""


def _norm(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    return "the gradient of a norm does not exist at 0" if is_backward else ""


def _statistic(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    size = count(inputs[0].shape)
    if size == 0:
        return "its input has no elements"
    is_spread = name.startswith(("std", "var"))
    if is_spread and (size == 1 or 1 in inputs[0].shape):
        return "the spread of a single value is not defined"
    if is_spread and is_backward and inputs[0].low == inputs[0].high:
        return "the gradient of a spread of 0 does not exist"
    return ""


def _decomposition(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    return "the gradient of a decomposition does not exist where its values are equal"


def _alignment(name: str, inputs: Sequence[Summary], is_backward: bool) -> str:
    return "a target that is longer than its input has an infinite loss (zero_infinity=True)"


EXPONENTIALS = frozenset({"exp", "exp2", "expm1", "sinh", "cosh"})
TWO_SIDED = frozenset({"sinh", "cosh"})
DIVISIONS = frozenset({"div", "true_divide", "reciprocal", "floor_divide", "remainder", "fmod"})
EDGES: dict[str, Judge] = {
    **dict.fromkeys(("log", "log2", "log10", "log1p"), _logarithm),
    **dict.fromkeys(("sqrt", "rsqrt"), _root),
    **dict.fromkeys(DIVISIONS, _division),
    **dict.fromkeys(EXPONENTIALS, _exponential),
    **dict.fromkeys(("pow", "float_power"), _power),
    **dict.fromkeys(("acos", "asin", "arccos", "arcsin", "atanh", "erfinv"), _within_one),
    "logit": _within_unit,
    **dict.fromkeys(("norm", "linalg_vector_norm", "linalg_norm", "cdist", "dist"), _norm),
    **dict.fromkeys(("mean", "std", "var", "std_mean", "var_mean", "nanmean"), _statistic),
    **dict.fromkeys(("linalg_eigh", "linalg_svd", "svd", "linalg_eig"), _decomposition),
    "ctc_loss": _alignment,
}


CAUSES = {
    BreakdownKind.DATA: "nan-in-data",
    BreakdownKind.MASKED: "fully-masked-attention",
    BreakdownKind.IGNORED: "padding-in-loss",
    BreakdownKind.HALF: "fp16-overflow",
    BreakdownKind.EDGE: "unstable-operation",
    BreakdownKind.CUSTOM: "incorrect-custom-backward",
}


def cause_of(run: Run) -> str | None:
    """Return the cause of the first non-finite value, where a replay came to the same outcome."""
    found = breakdown_of(run)
    return CAUSES.get(found.kind) if found is not None and found.is_shown else None


def strength_of(found: Breakdown) -> Strength:
    """Return how far a breakdown that is not shown speaks for its cause."""
    return Strength.STRONG if found.kind is not BreakdownKind.UNCLEAR else Strength.MODERATE


def is_of_half_weights(record: NonFinite) -> bool:
    """Updates of weights in float16 underflow and overflow in the optimizer itself."""
    return any(summary.dtype == "float16" for summary in record.inputs)
