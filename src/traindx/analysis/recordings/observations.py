"""How detectors look at a recording: late samples, inputs of losses, names of operations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod

from traindx.model.findings import Evidence, cite_record
from traindx.model.recording import Caught, LossInput, Place, Process, Sample, Shape, Summary
from traindx.model.run import Run

_BACKWARD = re.compile(r"Backward\d*$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OVERLOAD = re.compile(r"\.(?:default|out|int|dim|Tensor\w*|Scalar\w*|dim_IntList|self\w*)$")
LEARNT = 0.8  # of the first loss; less is noise, or the mean of the targets
EXPLAINED = 0.5  # of the variance of the targets is left
LATE = 0.4  # of the steps; what comes after is late
_INSTALLED = ("site-packages", "dist-packages", "/torch/", "lib/python")
_INTEGERS = ("int", "long", "uint", "bool")


@dataclass(frozen=True, slots=True)
class Term:
    """One input of a loss over the samples of one optimizer of a process."""

    samples: tuple[Sample, ...]
    inputs: tuple[LossInput, ...]
    process: Process = field(default_factory=Process)

    def __len__(self) -> int:
        return len(self.inputs)

    def labels(self, start: int = 0, end: int | None = None) -> Counter[str]:
        """Return how often each label entered the loss, over some of the samples or all."""
        return sum((Counter(i.labels) for i in self.inputs[start:end]), Counter[str]())

    def pairs(self) -> Iterator[tuple[Sample, LossInput]]:
        yield from zip(self.samples, self.inputs, strict=True)

    @property
    def seen(self) -> str:
        """How many samples there are, and over which steps, in words."""
        return f"{len(self)} samples, {spans(self.samples)}"

    def cite(self, says: str, at: int = -1, **values: float) -> Evidence:
        """Point at one of the samples, at the last unless another one is named."""
        sample = self.samples[at]
        return cite_record(self.process, sample.line, says, step=float(sample.step), **values)

    def late(self) -> Term:
        """Return the later part of what was trained, as far as it was numbers."""
        return self.of((s, i) for s, i in self.since(late_from(self.process)) if is_sound(i))

    def since(self, step: float) -> Iterator[tuple[Sample, LossInput]]:
        """Yield the samples from a step on, with what entered the loss."""
        yield from ((s, i) for s, i in self.pairs() if s.step >= step)

    def of(self, pairs: Iterable[tuple[Sample, LossInput]]) -> Term:
        """Return the part that consists of these samples and inputs."""
        kept = list(pairs)
        return Term(tuple(s for s, _ in kept), tuple(i for _, i in kept), self.process)


def is_sound(given: LossInput) -> bool:
    """Tell whether a loss was given numbers; what NaN looks like has another reason."""
    return not given.prediction.nonfinite and not (given.target and given.target.nonfinite)


def processes_of(run: Run) -> tuple[Process, ...]:
    """Return the recorded processes, rank 0 first."""
    return run.recording.processes if run.recording is not None else ()


def terms_of(process: Process, *losses: str) -> list[Term]:
    """Return what entered the named losses, each place in the graph of an optimizer on its own."""
    found: dict[tuple[int, str, int, int], list[tuple[Sample, LossInput]]] = {}
    for sample in process.samples:
        seen: dict[str, int] = {}
        for given in sample.losses:
            if given.loss not in losses:
                continue
            position = seen.get(given.loss, 0)
            seen[given.loss] = position + 1
            key = (sample.optimizer, given.loss, position, given.classes)
            found.setdefault(key, []).append((sample, given))
    return [Term((), (), process).of(pairs) for pairs in found.values()]


def terms_in(run: Run, *losses: str) -> Iterator[Term]:
    """Yield what entered the named losses in any process, rank 0 first."""
    for process in processes_of(run):
        yield from terms_of(process, *losses)


def last_step(process: Process, optimizer: int | None = None) -> int:
    """Return the last step of an optimizer, of the first one if none is named, that was seen."""
    owners = max(1, len({o.id for o in process.optimizers}))
    counted = process.counts.steps // owners if process.counts is not None else 0
    own = (s.step for s in process.samples if optimizer in (None, s.optimizer))
    return max([counted, *own], default=0)


def late_from(process: Process) -> float:
    """Return the step from which on a sample counts as late.

    Samples thin out as a run goes on, so that its last half may hold no more than one.
    """
    return last_step(process) * LATE


def late_samples(process: Process) -> tuple[Sample, ...]:
    """Return the samples of the later part, as far as they are numbers."""
    step = late_from(process)
    return tuple(s for s in process.samples if s.step >= step and all(map(is_sound, s.losses)))


def operation(name: str) -> str:
    """Return the plain name of an operation: `LogBackward0`, `aten::log` and `log_` are `log`."""
    plain = name.rsplit("::", 1)[-1].removeprefix("aten.").removeprefix("torch.")
    plain = _OVERLOAD.sub("", plain)
    plain = _HUMP.sub("_", _BACKWARD.sub("", plain)).lower().rsplit(".", 1)[-1]
    return plain.strip("_").removesuffix("_backward")


def extreme(summary: Summary) -> float:
    """Return the largest size of a finite value of a tensor; 0 where none is known."""
    return max((abs(v) for v in (summary.low, summary.high) if isfinite(v)), default=0.0)


def is_integer(summary: Summary) -> bool:
    """Tell whether a tensor holds whole numbers: ids, labels, bytes, marks."""
    return summary.dtype.removeprefix("torch.").startswith(_INTEGERS)


def is_half(summary: Summary) -> bool:
    """Tell whether a tensor is in float16, which ends at 65504; bfloat16 does not."""
    return summary.dtype.removeprefix("torch.") in ("float16", "half")


def rows(shape: Shape) -> int:
    """Return the number of examples of a batch."""
    return shape[0] if shape else 0


def count(shape: Shape) -> int:
    """Return the number of values of a tensor."""
    return prod(shape)


def shape_words(shape: Shape) -> str:
    """Return a shape as its user knows it: (32, 1), (32,)."""
    return f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"


def place_words(place: Place | None) -> str:
    """Return where, in words that follow a claim; nothing if it is not known."""
    if place is None:
        return ""
    name = place.file.replace("\\", "/").rsplit("/", 1)[-1]
    return f" at {name}:{place.line}"


def code_words(place: Place | None) -> str:
    """Return the code of a place, in words that follow it; nothing if it is not known."""
    return f" `{place.code.strip()}`" if place is not None and place.code.strip() else ""


def largest_share(counts: Mapping[str, int], total: int = 0) -> tuple[str, float]:
    """Return the most frequent key and its share of the total, or of what was counted."""
    if not counts:
        return "", 0.0
    key = max(counts, key=lambda k: counts[k])
    return key, counts[key] / max(total, sum(counts.values()), 1)


def summary_words(summary: Summary) -> str:
    """Return a tensor in words: its name, shape, type and range."""
    name = f"{summary.name}: " if summary.name else ""
    kind = summary.dtype.removeprefix("torch.")
    shape = f" {shape_words(summary.shape)}" if summary.shape else ""
    known = isfinite(summary.low) and isfinite(summary.high)
    span = f", {summary.low:.4g} … {summary.high:.4g}" if known else ""
    broken = f", {summary.nonfinite} not finite" if summary.nonfinite else ""
    return f"{name}{kind}{shape}{span}{broken}".strip()


def spans(samples: Sequence[Sample]) -> str:
    """Return the steps of samples in words."""
    steps = [s.step for s in samples]
    if len(set(steps)) < 2:
        return f"step {steps[0]}" if steps else "no step"
    return f"steps {min(steps)} to {max(steps)}"


def medians(values: Iterable[float]) -> float:
    """Return the middle of the numbers among the values; NaN if there is none."""
    known = sorted(v for v in values if isfinite(v))
    if not known:
        return float("nan")
    middle = len(known) // 2
    return known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2


def tensors_by_frame(caught: Caught) -> dict[str, dict[str, Summary]]:
    """Return the tensors that an exception left behind, by frame and name; the first of a name."""
    frames: dict[str, dict[str, Summary]] = {}
    for where, summary in caught.tensors:
        frames.setdefault(where, {}).setdefault(summary.name, summary)
    return frames


def cite_kept_batch(process: Process, caught: Caught) -> list[Evidence]:
    """Point at the batch that failed, where the recorder saved it."""
    says = f"the failing batch is saved in {caught.kept}"
    return [cite_record(process, caught.line, says, step=caught.step)] if caught.kept else []


def own_place(places: Sequence[Place]) -> Place | None:
    """Return the innermost of the places that lies in the user's own code."""
    own = [p for p in places if not any(part in p.file for part in _INSTALLED)]
    return own[-1] if own else None


def has_learnt(process: Process, optimizer: int | None = None) -> bool | None:
    """Tell whether late losses lie well below the first one; None where that is not known."""
    losses = [
        (s.step, s.loss)
        for s in process.samples
        if isfinite(s.loss) and optimizer in (None, s.optimizer)
    ]
    late = medians(loss for step, loss in losses if step >= late_from(process))
    if len(losses) < 2 or not isfinite(late):
        return None
    return late < LEARNT * losses[0][1] if losses[0][1] > 0 else late < losses[0][1]


def explains_targets(process: Process) -> bool:
    """Tell whether the first squared error lies well below the spread of the targets.

    Then the model knew something from the start: it was trained, or solved, before.
    """
    for sample in process.samples:
        given = sample.losses[0] if len(sample.losses) == 1 else None
        if given is None or given.loss != "mse_loss" or given.target is None:
            return False
        if isfinite(sample.loss) and given.target.std > 0.0:
            return sample.loss < EXPLAINED * given.target.std**2
    return False
