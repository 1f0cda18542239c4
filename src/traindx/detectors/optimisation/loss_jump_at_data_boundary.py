from traindx.analysis.metrics.jumps import boundaries, goes_on, step_up
from traindx.examples import Event, decay, join, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding


@detector(needs=("loss",), suggests=("data-distribution-change",))
def check(run: Run) -> Findings:
    """The loss steps up at a data or curriculum boundary.

    ## What it detects
    A sudden, lasting rise of the level of the training loss at the place of a boundary that the log
    or the config tells of: a curriculum stage, a new data set, a sequence length, an unfreezing.

    ## Why it matters
    New data has another loss: the step itself is no fault. It becomes one when the model does not
    learn the new data, or when the rate is too high for it.

    ## What to do
    Report the loss per data source; lower the learning rate or mix old data in at the boundary.

    ## When it is wrong
    A boundary that happens to lie beside a divergence explains nothing; the gradient norm tells.
    """
    loss = run.objective()
    if loss is None or len(loss.finite()) < 8:
        return
    finite = loss.finite()
    for boundary, evidence in boundaries(run, finite):
        step = step_up(finite, boundary)
        if step is None:
            continue
        before, after = step
        is_going_on = goes_on(loss)
        where = finite.when(boundary)
        says = f"{finite.origin.name} stepped from {before:.4g} to {after:.4g} at {where}"
        yield finding(
            f"The loss steps up where the training data changes, at {where}",
            {"data-distribution-change": Strength.STRONG},
            cite(finite, says, boundary, before=before, after=after),
            evidence,
            strength=Strength.MODERATE if is_going_on else Strength.WEAK,
            is_symptom=is_going_on,
        )
        return


_STEP = join(decay(300, 6.0, 4.0, noise=0.01), decay(200, 5.2, 4.4, noise=0.01))
_EVENT = Event("boundary", "curriculum stage 2", "train.log", "line 301", step=300)

FIRES = {"a curriculum stage": logged(loss_train=_STEP, events=[_EVENT])}

SILENT = {
    "a boundary without a step": logged(loss_train=decay(500), events=[_EVENT]),
    "near miss: a step without a boundary": logged(loss_train=_STEP),
}
