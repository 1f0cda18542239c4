from traindx.analysis.recordings.breakdowns import (
    Breakdown,
    BreakdownKind,
    breakdown_of,
    strength_of,
)
from traindx.analysis.recordings.observations import operation
from traindx.examples import NonFinite, Place, Process, Summary, recorded
from traindx.registry import Findings, Run, Strength, detector, finding

UNSTABLE, CUSTOM = "unstable-operation", "incorrect-custom-backward"
DATA = "nan-in-data"
# these compute nothing: a NaN that they give was handed to them as the value to write
WRITES = frozenset(
    {"masked_fill", "fill", "full", "full_like", "new_full", "where", "index_fill", "index_put",
     "masked_scatter", "scatter", "select_scatter", "slice_scatter", "constant_pad_nd"}
)  # fmt: skip


@detector(needs=("recording",), suggests=(UNSTABLE, CUSTOM, DATA))
def check(run: Run) -> Findings:
    """An operation gets an argument at the edge of its domain and gives NaN or infinity.

    ## What it detects
    The record of a replayed step in which a logarithm, root, division, power, exponential, arc
    cosine or norm is the first to give NaN or infinity, from inputs that are ordinary
    numbers: log of 0, division by 0, the gradient of a root at 0. An operation that only writes
    values (`masked_fill`, `where`) is handed the NaN by the program: missing values.

    ## Why it matters
    One such value in a batch turns the loss, then every weight, into NaN. The operation and its
    line are known, so nothing has to be guessed.

    ## What to do
    Guard the argument: `log_softmax` for a log of a softmax, an epsilon inside the root or under
    the fraction, a clamp before acos.

    ## When it is wrong
    Where the replay did not come to the same outcome the place is likely, not certain. The argument
    may have reached the edge because the weights diverged before; then the curve shows a climb.
    """
    found = breakdown_of(run)
    if found is None or found.kind not in (
        BreakdownKind.EDGE,
        BreakdownKind.CUSTOM,
        BreakdownKind.UNCLEAR,
    ):
        return
    if found.kind is BreakdownKind.UNCLEAR and operation(found.record.op).rstrip("_") in WRITES:
        strong = Strength.STRONG if found.is_shown else Strength.MODERATE
        yield finding(
            f"{found.title[0].upper()}{found.title[1:]} writes the first NaN or infinity into "
            f"finite values, at step {found.record.step}",
            {DATA: strong, UNSTABLE: Strength.WEAK},
            *found.evidence,
            place=found.record.place,
        )
        return
    cause = CUSTOM if found.kind is BreakdownKind.CUSTOM else UNSTABLE
    is_shown = found.is_shown and found.kind is BreakdownKind.EDGE
    strength = strength_of(found)
    yield finding(
        _claim(found),
        {} if is_shown else {cause: strength},
        *found.evidence,
        shows=cause if is_shown else None,
        against={"nan-in-data": strength} if found.is_shown else {},
        place=found.record.place,
    )


def _claim(found: Breakdown) -> str:
    why = f": {found.why}" if found.why else ""
    title = found.title[0].upper() + found.title[1:]
    return f"{title} gives the first NaN or infinity, at step {found.record.step}{why}"


_LINE = Place("loss.py", 12, "my_loss", "return -torch.log(p).mean()")
_ZERO = Summary("self", (32, 10), "float32", "cpu", 0.0, 1.0, 0.1, 0.2)


def _run(**fields: object) -> Run:
    record = NonFinite(9, 57, is_exact=True, **fields)  # type: ignore[arg-type]
    return recorded(Process(nonfinite=(record,)))


_DIVISOR = Summary("other", (32,), "float32", "cpu", 0.0, 3.0, 1.0, 0.5)
_LARGE = Summary("self", (32, 10), "float32", "cpu", -1e20, 1e22, 1.0, 1e21)

FIRES = {
    "log of 0": _run(phase="forward", op="log", place=_LINE, inputs=(_ZERO,)),
    "missing values are written": _run(
        phase="forward", op="masked_fill", inputs=(_ZERO, Summary("mask", (32, 10), "bool", "cpu"))
    ),
    "the gradient of a root": _run(phase="backward", op="SqrtBackward0", inputs=(_ZERO,)),
    "a division": _run(phase="loss", op="aten.div.Tensor", inputs=(_ZERO, _DIVISOR)),
    "the replay tells why": _run(phase="forward", op="log", why="the smallest input of log is 0"),
    "not exact": recorded(
        Process(nonfinite=(NonFinite(9, 57, phase="forward", op="log", inputs=(_ZERO,)),))
    ),
    "a custom function": _run(phase="backward", op="MyStepBackward"),
}

SILENT = {
    "near miss: huge values overflow": _run(phase="forward", op="mm", inputs=(_LARGE, _LARGE)),
    "near miss: NaN in the batch": _run(phase="data"),
    "near miss: the replay found nothing": _run(phase=""),
    "nothing broke": recorded(Process()),
}
