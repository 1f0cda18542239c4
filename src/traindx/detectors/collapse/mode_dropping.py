from traindx.analysis.metrics.players import covered_modes
from traindx.examples import flat, logged, make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

NEVER_LEARNT = "frozen-parameters missing-optimizer-step lr-zero"


@detector(
    needs=("other/*", "loss/train/*"),
    suggests=("generator-mode-collapse", "frozen-parameters", "missing-optimizer-step", "lr-zero"),
)
def check(run: Run) -> Findings:
    """A generator covers one mode of its data, or half of those it has covered.

    ## What it detects
    In a run with the losses of a generator and a discriminator, a logged count of modes that is
    one in most of the run, or that fell to half of its best or less, and stays there.

    ## Why it matters
    The generator makes the same few samples whatever its noise; the losses need not show it.

    ## What to do
    Check that the noise is drawn anew for every batch and reaches the output; then slow the
    discriminator down, or give it whole batches to judge.

    ## When it is wrong
    Data of one mode has no second one to cover. A generator that does not learn at all covers one
    from the start; a game that one side has won outright is judged elsewhere.
    """
    found = covered_modes(run)
    if found is None:
        return
    modes, start, top, level = found
    says = f"{modes.origin.name} is {level:g} since {modes.when(start)}; its best is {top:g}"
    yield finding(
        f"The generator covers {level:g} mode{'' if level == 1.0 else 's'} of its data",
        suggested("generator-mode-collapse", weak="" if top > level else NEVER_LEARNT),
        cite(modes, says, start, -1, top=top, level=level),
    )


def _run(modes: list[float], name: str = "other/modes", judge: float = 1.2) -> Run:
    losses = {"loss/train/d": flat(14, judge, noise=0.1), "loss/train/g": flat(14, 0.9, noise=0.1)}
    return make_run({name: modes, **losses})


FIRES = {
    "one mode from the start": _run([1.0] * 14),
    "half of them lost": _run([4.0, *[2.0] * 12, 3.0]),
}

SILENT = {
    "covered": _run([4.0] * 14),
    "near miss: lost and found again": _run([4.0, 2, 2, 2, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4]),
    "near miss: the discriminator does not learn": _run([1.0] * 14, judge=25.0),
    "near miss: another number": _run([1.0] * 14, "other/mode_id"),
    "near miss: no generator": logged(other_modes=[1.0] * 14, loss_train=flat(14, 1.0)),
}
