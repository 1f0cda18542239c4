from traindx.analysis.metrics.loss_terms import is_task_term, is_total, term_levels
from traindx.examples import decay, flat, join, make_run
from traindx.model.run import Series
from traindx.registry import Evidence, Findings, Run, Strength, cite, detector, finding

FELL = 0.2  # end over start of a term that was learnt
KEPT = 0.9  # end over start of a term that was not
LEFT = 0.25  # of what is left of the sum: a term that weighs nothing is no loss


@detector(needs=("loss/train/*",), suggests=("competing-losses", "unnormalised-targets"))
def check(run: Run) -> Findings:
    """One term of a composite loss falls while another stays where it began.

    ## What it detects
    Among the terms of a training loss: at least one that fell to a fraction, and at least one that
    never left its starting level and makes up a good part of what remains.

    ## Why it matters
    The sum looks like progress; the task that the stuck term stands for is not learnt at all.

    ## What to do
    Bring the terms to one scale (weights, or normalised residuals), then watch each of them.

    ## When it is wrong
    Regularisers and adversarial terms are not meant to fall and are left out by name. A term that
    starts at its optimum stays there.
    """
    terms = [s for s in run.matching("loss/train/*") if is_task_term(s)]
    if len(terms) < 2 or run.objective() is None:
        return
    levels = [(s, *term_levels(s)) for s in terms]
    learnt = [s for s, start, end in levels if start > 0 and end < FELL * start]
    rest = max(sum(end for _, _, end in levels), *_totals(run))
    stuck = [
        (s, start, end)
        for s, start, end in levels
        if start > 0 and end > KEPT * start and end > LEFT * rest
    ]
    if not learnt or not stuck:
        return
    evidence = [_cite_term(s, start, end) for s, start, end in stuck]
    evidence += [_cite_term(s, *term_levels(s)) for s in learnt[:2]]
    names = ", ".join(s.origin.name for s, _, _ in stuck)
    yield finding(
        f"The loss term {names} does not fall while other terms do",
        {"competing-losses": Strength.STRONG, "unnormalised-targets": Strength.WEAK},
        *evidence,
    )


def _totals(run: Run) -> list[float]:
    """Return where the sums end: a term that is little beside them is not what training sees."""
    totals = [s.finite() for n in run.series if (s := run.get(n)) and is_total(n)]
    return [0.0, *(term_levels(s)[1] for s in totals if len(s))]


def _cite_term(series: Series, start: float, end: float) -> Evidence:
    says = f"{series.origin.name} went from {start:.4g} to {end:.4g}"
    return cite(series.finite(), says, 0, -1, start=start, end=end)


FIRES = {
    "boundary terms stay at one": make_run(
        {
            "loss/train/interior": join(decay(300, 5000.0, 0.1), flat(100, 0.1)),
            "loss/train/port": flat(400, 1.0, noise=0.01),
        }
    )
}

SILENT = {
    "near miss: a term that is little beside the total": make_run(
        {
            "loss/train": decay(100, 1.8, 1.3),
            "loss/train/alpha": decay(100, 0.11, 0.01),
            "loss/train/det": flat(100, 0.068, noise=0.05),
        }
    ),
    "all terms fall": make_run(
        {"loss/train/box": decay(100, 0.11, 0.03), "loss/train/cls": decay(100, 0.09, 0.01)}
    ),
    "near miss: a small term that stays": make_run(
        {
            "loss/train/box": decay(100, 1.1, 0.2),
            "loss/train/objectness": flat(100, 0.03, noise=0.1),
        }
    ),
    "a regulariser that stays": make_run(
        {"loss/train/nll": decay(100, 5.0, 0.4), "loss/train/l2_reg": flat(100, 1.0)}
    ),
}
