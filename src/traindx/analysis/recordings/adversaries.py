"""Two players of a recorded run: how far the verdicts of a discriminator differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan

from traindx.analysis.recordings.observations import is_sound, late_from, medians, rows
from traindx.analysis.recordings.traces import latest_optimizers
from traindx.model.recording import LossInput, Optimizer, Process, Sample

VERDICTS = ("bce_with_logits", "bce", "mse_loss")
STEPS = 300  # a fresh generator's samples look alike
EXAMPLES = 16  # of a batch
SURE = 0.01  # a probability nearer to 0 or 1 says nothing of how far logits differ


@dataclass(frozen=True, slots=True)
class VerdictPair:
    """How far the verdicts on real and on generated examples differ, at one step."""

    sample: Sample
    real: float
    made: float

    @property
    def ratio(self) -> float:
        return self.made / self.real


def _verdict_pairs(process: Process) -> list[VerdictPair]:
    """Return real against made, from the samples of the optimizer that sees both."""
    by_owner: dict[int, list[tuple[Sample, list[LossInput]]]] = {}
    for sample in process.samples:
        by_owner.setdefault(sample.optimizer, []).append(
            (sample, [i for i in sample.losses if _is_verdict(i)])
        )
    if len(by_owner) != 2:
        return []
    both = [o for o, seen in by_owner.items() if all(_sees_both(v) for _, v in seen)]
    one = [o for o, seen in by_owner.items() if all(len(v) == 1 for _, v in seen)]
    if len(both) == 1 and len(one) == 1:
        return [p for s, v in by_owner[both[0]] if (p := _pair(s, *_ends(v))) is not None]
    if len(one) == 2:
        return _across(by_owner[one[0]], by_owner[one[1]])
    return []


def _across(
    first: list[tuple[Sample, list[LossInput]]], second: list[tuple[Sample, list[LossInput]]]
) -> list[VerdictPair]:
    """Pair the samples of both players, where each has its own backward pass for real and made.

    What is seen of the discriminator is its pass over real examples. The graph of the generator's
    loss goes through both networks and is the larger one.
    """

    def size(seen: list[tuple[Sample, list[LossInput]]]) -> float:
        return medians(float(s.graph_nodes) for s, _ in seen)

    if size(first) == size(second):
        return []
    judge, maker = sorted((first, second), key=size)
    made = {s.step: v[0] for s, v in maker}
    found = []
    for sample, verdicts in judge:
        step = min(made, key=lambda m: abs(m - sample.step))
        is_near = abs(step - sample.step) <= 2
        if is_near and _target(verdicts[0]) > 0.5 and _target(made[step]) > 0.5:
            found.append(_pair(sample, made[step], verdicts[0]))
    return [p for p in found if p is not None]


def _is_verdict(given: LossInput) -> bool:
    """One output for each example, held against one constant."""
    target = given.target
    is_constant = target is not None and (target.distinct == 1 or target.std == 0.0)
    is_known = given.loss in VERDICTS and is_sound(given)
    return is_known and is_constant and rows(given.prediction.shape) >= EXAMPLES


def _target(given: LossInput) -> float:
    return given.target.mean if given.target is not None else nan


def _sees_both(verdicts: Sequence[LossInput]) -> bool:
    return len(verdicts) >= 2 and len({round(_target(v), 2) for v in verdicts}) == 2


def _ends(verdicts: Sequence[LossInput]) -> tuple[LossInput, LossInput]:
    return min(verdicts, key=_target), max(verdicts, key=_target)


def _pair(sample: Sample, made: LossInput, real: LossInput) -> VerdictPair | None:
    apart, together = _difference(real), _difference(made)
    known = isfinite(apart) and isfinite(together) and apart > 0.0
    return VerdictPair(sample, apart, together) if known else None


def _difference(given: LossInput) -> float:
    """Return how far verdicts differ, in logits where they are probabilities."""
    if given.loss != "bce":
        return given.prediction.std
    mean = given.prediction.mean
    return given.prediction.std / (mean * (1 - mean)) if SURE < mean < 1 - SURE else nan


def late_pairs(process: Process) -> list[VerdictPair]:
    """Return the pairs of the later part of a run that is long enough to judge."""
    last = max((s.step for s in process.samples), default=0)
    pairs = _verdict_pairs(process) if last >= STEPS else []
    return [p for p in pairs if p.sample.step >= late_from(process)]


def times_faster(process: Process, judge: int) -> float:
    """Return the discriminator's learning rate over the generator's; 0 where it is not known."""
    told = {o.id: o for o in latest_optimizers(process)}
    others = [o for o in told.values() if o.id != judge]
    if judge not in told or len(others) != 1 or others[0].type != told[judge].type:
        return 0.0
    own, other = _rate(told[judge]), _rate(others[0])
    return own / other if other > 0.0 else 0.0


def _rate(optimizer: Optimizer) -> float:
    rates = [g.get("lr") for g in optimizer.groups]
    return max((float(r) for r in rates if isinstance(r, (int, float))), default=0.0)
