from traindx.analysis.metrics.loss_terms import is_outweighed, term_levels
from traindx.examples import decay, flat, make_run
from traindx.registry import Findings, Run, Strength, cite, detector, finding

ENOUGH = 20  # points
LARGE = 1e3  # the large term's own level: a small term beside an ordinary one may be a penalty


@detector(needs=("loss/train/*",), suggests=("competing-losses", "unnormalised-targets"))
def check(run: Run) -> Findings:
    """One term of the loss outweighs another ten thousandfold from start to end.

    ## What it detects
    Two terms of a training loss whose levels differ by four orders of magnitude at the start and at
    the end, the large one large in itself, the small one not learnt.

    ## Why it matters
    The gradient is that of the large term alone; the small one is left to chance.

    ## What to do
    Non-dimensionalise or normalise the residuals so that every term starts near one.

    ## When it is wrong
    A term that is small because it is solved already needs no gradient.
    """
    terms = [s.finite() for s in run.matching("loss/train/*") if len(s.finite()) >= ENOUGH]
    if len(terms) < 2 or run.objective() is None:
        return
    big = max(terms, key=lambda s: term_levels(s)[1])
    start, end = term_levels(big)
    if end < LARGE or start < LARGE:
        return
    ignored = [s for s in terms if is_outweighed(s, start, end)]
    if not ignored:
        return
    small = ignored[0]
    weight = end / term_levels(small)[1]
    yield finding(
        f"The loss term {big.origin.name} is {weight:.0e} times as large as {small.origin.name}",
        {"unnormalised-targets": Strength.STRONG, "competing-losses": Strength.WEAK},
        cite(big, f"{big.origin.name} went from {start:.3g} to {end:.3g}", 0, -1, end=end),
        cite(small, f"{small.origin.name} stays at {term_levels(small)[1]:.3g}", 0, -1),
    )


FIRES = {
    "residuals in raw units": make_run(
        {
            "loss/train/conductor": decay(200, 4e12, 1e7),
            "loss/train/port": flat(200, 1.0, noise=0.02),
        }
    )
}

SILENT = {
    "one scale": make_run({"loss/train/a": decay(100, 2.0, 0.5), "loss/train/b": decay(100)}),
    "near miss: a tiny penalty": make_run(
        {"loss/train/nll": decay(100, 5.0, 1.0), "loss/train/penalty": flat(100, 1e-5)}
    ),
    "both learnt": make_run(
        {"loss/train/a": decay(100, 1e9, 1e5), "loss/train/b": decay(100, 1e3, 1.0)}
    ),
}
