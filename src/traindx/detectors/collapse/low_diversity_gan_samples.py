"""The discriminator sees next to no difference between the generator's samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan

from traindx.analysis.recordings.observations import (
    is_sound,
    late_from,
    medians,
    processes_of,
    rows,
    spans,
)
from traindx.analysis.recordings.traces import latest_optimizers
from traindx.examples import recorded
from traindx.model.findings import Finding, Strength, cite_record, finding
from traindx.model.recording import Counts, LossInput, Optimizer, Process, Sample, Summary
from traindx.registry import Findings, Run, detector

CAUSE = "generator-mode-collapse"
VERDICTS = ("bce_with_logits", "bce", "mse_loss")
GONE = 0.05  # of how far the verdicts on real examples differ, in every late sample
FEW = 0.3  # the same, for a remark: in every late sample …
USUALLY_FEW = 0.15  # … and in the middle of them
FASTER = 10.0  # times the generator's rate; up to 5 is a method (two time scales)
ENOUGH = 3  # late samples
STEPS = 300  # a fresh generator's samples look alike
EXAMPLES = 16  # of a batch
SURE = 0.01  # a probability nearer to 0 or 1 says nothing of how far logits differ


@dataclass(frozen=True, slots=True)
class _Pair:
    """How far the verdicts on real and on generated examples differ, at one step."""

    sample: Sample
    real: float
    made: float

    @property
    def ratio(self) -> float:
        return self.made / self.real


@detector(needs=("recording",), suggests=(CAUSE, "lr-too-high"))
def check(run: Run) -> Findings:
    """The verdicts on generated examples hardly differ, while those on real ones do.

    ## What it detects
    Two optimizers that play against each other: one is given verdicts on real and on made examples
    (binary cross-entropy or squared error against a constant), the other verdicts on made ones
    alone. In every late sample the verdicts on made examples differ by less than a twentieth of
    those on real ones. Milder cases are a remark.

    ## Why it matters
    A discriminator whose verdicts are all the same is shown the same example again and again, or
    sees through all of them at once. Either way the generator has lost its variety.

    ## What to do
    Look at a grid of samples. Check that the noise reaches the generator and varies; slow the
    discriminator down, or regularise it.

    ## When it is wrong
    A fresh generator makes the same of all noise: the first steps, and small batches, are left
    alone. Losses of Wasserstein and hinge GANs have no verdicts against a constant and are not
    seen. Positive and negative pairs of one optimizer are no game.
    """
    for process in processes_of(run):
        pairs = _late(process, _pairs(process))
        if len(pairs) < ENOUGH:
            continue
        ratios = [p.ratio for p in pairs]
        faster = _times_faster(process, pairs[-1].sample.optimizer)
        if max(ratios) < GONE:
            yield _finding(process, pairs, Strength.STRONG, faster)
        elif max(ratios) < FEW and medians(ratios) < USUALLY_FEW:
            is_outrun = faster >= FASTER
            yield _finding(
                process, pairs, Strength.STRONG if is_outrun else Strength.MODERATE, faster
            )


def _pairs(process: Process) -> list[_Pair]:
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
) -> list[_Pair]:
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


def _pair(sample: Sample, made: LossInput, real: LossInput) -> _Pair | None:
    apart, together = _difference(real), _difference(made)
    known = isfinite(apart) and isfinite(together) and apart > 0.0
    return _Pair(sample, apart, together) if known else None


def _difference(given: LossInput) -> float:
    """Return how far verdicts differ, in logits where they are probabilities."""
    if given.loss != "bce":
        return given.prediction.std
    mean = given.prediction.mean
    return given.prediction.std / (mean * (1 - mean)) if SURE < mean < 1 - SURE else nan


def _late(process: Process, pairs: Sequence[_Pair]) -> list[_Pair]:
    last = max((s.step for s in process.samples), default=0)
    return [p for p in pairs if p.sample.step >= late_from(process)] if last >= STEPS else []


def _times_faster(process: Process, judge: int) -> float:
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


def _finding(
    process: Process, pairs: Sequence[_Pair], strength: Strength, faster: float
) -> Finding:
    last = pairs[-1]
    says = (
        f"the discriminator's outputs vary by {last.made:.2g} on generated and {last.real:.2g} on "
        f"real examples; the ratio is at most {max(p.ratio for p in pairs):.1%} in all "
        f"{len(pairs)} samples, {spans([p.sample for p in pairs])}"
    )
    evidence = [cite_record(process, last.sample.line, says, step=float(last.sample.step))]
    suggests = {CAUSE: strength}
    if faster >= FASTER:
        line = latest_optimizers(process)[0].line
        says = f"the discriminator's learning rate is {faster:.3g} times the generator's"
        evidence.append(cite_record(process, line, says, times=faster))
        suggests["lr-too-high"] = Strength.MODERATE
    return finding(
        "The discriminator's outputs hardly differ between generated samples",
        suggests,
        *evidence,
        strength=strength,
        onset=pairs[0].sample.step,
        place=last.sample.place,
    )


def _verdict(target: float, differ: float, *, batch: int = 64) -> LossInput:
    return LossInput(
        "bce_with_logits",
        "addmm",
        Summary(shape=(batch, 1), mean=0.2, std=differ),
        Summary(shape=(batch, 1), mean=target, std=0.0, distinct=1),
    )


def _game(
    real: float, made: float, *, steps: int = 900, batch: int = 64, rate: float = 1e-3,
    is_split: bool = False, owners: int = 2,
) -> Run:  # fmt: skip
    samples = []
    for i in range(9):
        both = (_verdict(1.0, real, batch=batch), _verdict(0.0, made, batch=batch))
        told = both[:1] if is_split else both
        fooled = (_verdict(1.0, made, batch=batch),)
        at_step = steps * i // 8
        samples.append(Sample(2 * i + 3, at_step, 0, losses=told, graph_nodes=12))
        if owners > 1:
            samples.append(Sample(2 * i + 4, at_step, 1, losses=fooled, graph_nodes=24))
    players = (
        Optimizer(1, 0, "Adam", groups=({"lr": rate},)),
        Optimizer(2, 1, "Adam", groups=({"lr": 1e-3},)),
    )[:owners]
    counts = Counts(99, steps=steps * owners)
    return recorded(Process(optimizers=players, samples=tuple(samples), counts=counts))


FIRES = {
    "one sample for all noise": _game(4.0, 0.01),
    "real and made in passes of their own": _game(4.0, 0.01, is_split=True),
    "a discriminator that runs ahead": _game(3.5, 0.4, rate=0.03),
    "a remark: little variety": _game(3.5, 0.4),
}

SILENT = {
    "in balance": _game(0.3, 0.5),
    "near miss: the discriminator is ahead, the samples differ": _game(4.5, 1.4, rate=4e-3),
    "near miss: the first steps": _game(4.0, 0.01, steps=100),
    "near miss: one example at a time": _game(4.0, 0.0, batch=1),
    "near miss: positive and negative pairs of one model": _game(4.0, 0.01, owners=1),
}
