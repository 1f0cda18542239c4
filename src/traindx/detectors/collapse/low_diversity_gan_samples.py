from traindx.analysis.recordings.adversaries import late_pairs, times_faster
from traindx.analysis.recordings.observations import medians, processes_of, spans
from traindx.analysis.recordings.traces import latest_optimizers
from traindx.examples import Counts, LossInput, Optimizer, Process, Sample, Summary, recorded
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding, suggested

CAUSE = "generator-mode-collapse"
GONE = 0.05  # of how far the verdicts on real examples differ, in every late sample
FEW = 0.3  # the same, for a remark: in every late sample …
USUALLY_FEW = 0.15  # … and in the middle of them
FASTER = 10.0  # times the generator's rate; up to 5 is a method (two time scales)
ENOUGH = 3  # late samples


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
        pairs = late_pairs(process)
        ratios = [p.ratio for p in pairs]
        is_gone = max(ratios, default=1.0) < GONE
        is_little = max(ratios, default=1.0) < FEW and medians(ratios) < USUALLY_FEW
        if len(pairs) < ENOUGH or not (is_gone or is_little):
            continue
        last = pairs[-1]
        faster = times_faster(process, last.sample.optimizer)
        says = (
            f"the discriminator's outputs vary by {last.made:.2g} on generated and {last.real:.2g} "
            f"on real examples; the ratio is at most {max(ratios):.1%} in all {len(pairs)} "
            f"samples, {spans([p.sample for p in pairs])}"
        )
        evidence = [cite_record(process, last.sample.line, says, step=float(last.sample.step))]
        is_outrun = faster >= FASTER
        strength = Strength.STRONG if is_gone or is_outrun else Strength.MODERATE
        if is_outrun:
            line = latest_optimizers(process)[0].line
            says = f"the discriminator's learning rate is {faster:.3g} times the generator's"
            evidence.append(cite_record(process, line, says, times=faster))
        yield finding(
            "The discriminator's outputs hardly differ between generated samples",
            {CAUSE: strength} | suggested(moderate="lr-too-high" if is_outrun else ""),
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
