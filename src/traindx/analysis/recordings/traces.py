"""The parameters of a recorded process over its samples: their gradients, owners and movements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from math import isfinite, prod

from traindx.model.findings import Finding
from traindx.model.recording import Model, Optimizer, Parameter, Process, Sample
from traindx.model.run import Run

STIRRED = 1e-7  # relative change of a norm; sums in float32 repeat better than this
SHOWN = 3  # names in a claim

# trained by design while the rest stays as it is, with or without `requires_grad`
ADAPTERS = re.compile(
    r"lora|adapter|prompt|prefix|(?:^|[._])(?:ia3|vera)|soft_token", re.IGNORECASE
)
# follow another network, or serve only some examples, by design
FOLLOWERS = re.compile(
    r"teacher|target|(?:^|[._])ema|momentum|averag|shadow|key_enc|encoder_k|ref_model|expert|frozen",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"\d[\d.,e+-]*")


@dataclass(frozen=True, slots=True)
class Trace:
    """One parameter over the samples that tell of it; `index` is its place in its model."""

    parameter: Parameter
    model: Model
    index: int
    samples: tuple[Sample, ...] = ()
    grads: tuple[float | None, ...] = ()
    norms: tuple[float, ...] = ()
    ratios: tuple[float | None, ...] = ()
    moves: tuple[bool | None, ...] = ()

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def size(self) -> int:
        return prod(self.parameter.shape)

    @property
    def is_matrix(self) -> bool:
        """Tell weights from biases, norms and scales, whose gradients have scales of their own."""
        return len(self.parameter.shape) >= 2

    @property
    def is_owned(self) -> bool:
        return self.parameter.optimizer is not None

    @property
    def is_reached(self) -> bool:
        """Tell whether backward ever gave it a gradient, be it zero."""
        return any(g is not None for g in self.grads)

    @property
    def has_gradient(self) -> bool:
        return any(g is not None and isfinite(g) and g > 0.0 for g in self.grads)

    @property
    def has_moved(self) -> bool:
        """Tell whether it ever changed, in a step or between the samples."""
        if any(self.moves):
            return True
        known = [n for n in self.norms if isfinite(n)]
        return bool(known) and max(known) - min(known) > STIRRED * max(known)

    @property
    def is_known_still(self) -> bool:
        """Tell whether it was seen not to change, rather than not seen."""
        is_seen = any(m is False for m in self.moves) or len(self.norms) > 1
        return is_seen and not self.has_moved

    def of_owner(self) -> Trace:
        """Return the part that the steps of its own optimizer tell."""
        owner = self.parameter.optimizer
        keep = [i for i, s in enumerate(self.samples) if s.optimizer == owner]
        return Trace(
            self.parameter,
            self.model,
            self.index,
            tuple(self.samples[i] for i in keep),
            tuple(self.grads[i] for i in keep),
            tuple(self.norms[i] for i in keep),
            tuple(self.ratios[i] for i in keep),
            tuple(self.moves[i] for i in keep),
        )


_Column = tuple[Sample, "float | None", float, "float | None", "bool | None"]


def latest_models(process: Process) -> list[Model]:
    """Return the last that was told of every model, in the order in which they were met."""
    return list({m.id: m for m in process.models}.values())


def latest_optimizers(process: Process) -> list[Optimizer]:
    """Return the last that was told of every optimizer."""
    return list({o.id: o for o in process.optimizers}.values())


def traces_of(process: Process) -> list[Trace]:
    """Return every parameter of the known models with what the samples tell of it."""
    known = [(m, i, p) for m in latest_models(process) for i, p in enumerate(m.parameters)]
    columns: list[list[_Column]] = [[] for _ in known]
    placed: dict[tuple[tuple[str, ...], int], list[int | None]] = {}
    for sample in process.samples:
        key = (sample.names, sample.optimizer)
        if key not in placed:
            placed[key] = _places(known, sample)
        for at, place in enumerate(placed[key]):
            if place is not None:
                columns[place].append(_column(sample, at))
    return [
        Trace(p, m, i, *_transposed(column))
        for (m, i, p), column in zip(known, columns, strict=True)
    ]


def _column(sample: Sample, at: int) -> _Column:
    def cell(values: Sequence[float | None]) -> float | None:
        return values[at] if at < len(values) else None

    norm = cell(sample.weight_norms)
    moved = sample.has_moved[at] if at < len(sample.has_moved) else None
    return (
        sample,
        cell(sample.grad_norms),
        float("nan") if norm is None else norm,
        cell(sample.update_ratios),
        moved,
    )


def _transposed(
    columns: list[_Column],
) -> tuple[
    tuple[Sample, ...],
    tuple[float | None, ...],
    tuple[float, ...],
    tuple[float | None, ...],
    tuple[bool | None, ...],
]:
    return (
        tuple(c[0] for c in columns),
        tuple(c[1] for c in columns),
        tuple(c[2] for c in columns),
        tuple(c[3] for c in columns),
        tuple(c[4] for c in columns),
    )


def _places(known: list[tuple[Model, int, Parameter]], sample: Sample) -> list[int | None]:
    """Return which known parameter each column of a sample stands for.

    Two models may use one name. Where a sample tells of fewer than there are, it tells of those
    that its optimizer owns.
    """
    held: dict[str, list[int]] = {}
    for place, (_, _, parameter) in enumerate(known):
        held.setdefault(parameter.name, []).append(place)
    wanted = Counter(sample.names)
    for name, places in held.items():
        if wanted[name] < len(places):
            own = [p for p in places if known[p][2].optimizer == sample.optimizer]
            held[name] = own + [p for p in places if p not in own]
    return [held[name].pop(0) if held.get(name) else None for name in sample.names]


def told_once(run: Run, look: Callable[[Process], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield what a look at every process finds; a fault that ranks share is one finding."""
    seen: set[tuple[str | None, tuple[str, ...], str]] = set()
    for process in run.recording.processes if run.recording is not None else ():
        for finding in look(process):
            said = _NUMBERS.sub("", finding.claim)
            key = (finding.shows, tuple(finding.suggests), said)
            if key not in seen:
                seen.add(key)
                yield finding


def per_process(
    look: Callable[[Process], Iterable[Finding]],
) -> Callable[[Run], Iterator[Finding]]:
    """Make a rule on a process one on a run; a fault that ranks share is one finding."""

    @wraps(look)
    def check(run: Run) -> Iterator[Finding]:
        return told_once(run, look)

    return check


def named(traces: Sequence[Trace]) -> str:
    """Return the names of parameters for a claim, the rest as a number."""
    names = ", ".join(t.name for t in traces[:SHOWN])
    return f"{names} and {len(traces) - SHOWN} more" if len(traces) > SHOWN else names


def layers_named(process: Process, names: Sequence[str]) -> str:
    """Return layers with their types for a claim, the rest as a number."""
    types = {m.name: m.type for model in process.models for m in model.modules}
    shown = [f"{n} ({types[n]})" if types.get(n) else n for n in names[:SHOWN]]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(shown) + more


def share(part: Sequence[Trace], whole: Sequence[Trace]) -> float:
    """Return how many of the numbers of the whole lie in the part."""
    return sum(t.size for t in part) / max(1, sum(t.size for t in whole))


def unreached(process: Process, enough: int) -> dict[int, list[Trace]]:
    """Return, by model, the parameters that are to be trained and never got a gradient.

    Only the steps of the owner count, of which there must be enough; a network that follows another
    one, and whatever moved nevertheless, is left out.
    """
    found: dict[int, list[Trace]] = {}
    for trace in traces_of(process):
        own = trace.of_owner()
        is_meant = trace.is_owned and trace.parameter.is_trainable
        if not is_meant or own.is_reached or trace.is_reached or trace.has_moved:
            continue
        if len(own.samples) >= enough and not FOLLOWERS.search(trace.name):
            found.setdefault(trace.model.id, []).append(trace)
    return found


def reached(process: Process, model: int) -> list[Trace]:
    """Return the parameters of a model that got a gradient."""
    return [t for t in traces_of(process) if t.model.id == model and t.is_reached]


def is_below(lower: Sequence[Trace], upper: Sequence[Trace]) -> bool:
    """Tell whether all of the first lie nearer to the input, in the order of the model."""
    return bool(lower and upper) and max(t.index for t in lower) < min(t.index for t in upper)
