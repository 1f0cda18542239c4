from traindx.analysis.recordings.observations import shape_words, spans, terms_in
from traindx.analysis.recordings.predictions import is_of_the_batch, outer_broadcast
from traindx.analysis.steps.broadcasts import crossed_in_loss
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import LossInput, Shape, Summary, captured, recorded, sampled, step_of
from traindx.registry import Findings, Run, detector, finding, suggested

CAUSE = "target-shape-broadcast"
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
BY_HAND = "difference"  # (prediction - target) ** 2


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Predictions of shape (N, 1) were compared with targets of shape (N,), giving (N, N).

    ## What it detects
    In the graph of the loss: a squared, absolute or Huber error, or a difference written by hand,
    in which (N, 1) met (N,) and became (N, N), in every sample with more than one example. In a
    captured step, any operation on the way to the loss in which outputs and labels meet so.

    ## Why it matters
    Every prediction is compared with every target. The loss is a number, gradients flow, and the
    model learns the mean of the targets.

    ## What to do
    Give both the same shape: `output.squeeze(1)`, or `target.unsqueeze(1)`.

    ## When it is wrong
    Losses over all pairs are written with both (N, 1) and (1, N); those, and any other
    broadcasting, are left alone.
    """
    for step in steps_of(run, training=True):
        for pair in crossed_in_loss(step):
            sides = f"{pair.column.shape} and {pair.row.shape}"
            says = f"{sides} broadcast to {pair.result} in `{pair.act.name}`"
            claim = f"The loss sets every output against every label: {sides} broadcast"
            yield finding(claim, CAUSE, step.cite(pair.act, says), place=pair.act.place)
            return
    for term in terms_in(run, *LOSSES, BY_HAND):
        met = [m for m in map(outer_broadcast, term.inputs) if m is not None]
        judged = [i for i in term.inputs if not i.broadcast or i.broadcast[-1] != (1, 1)]
        loss = term.inputs[0].loss
        if not met or len(met) != len(judged):
            continue
        if loss == BY_HAND and not is_of_the_batch(term, met[0]):
            continue
        first, second, result = map(shape_words, met[0])
        says = f"{first} and {second} broadcast to {result} in {loss}, {spans(term.samples)}"
        claim = f"The loss ({loss}) broadcasts {first} against {second} to {result}"
        cause = suggested(CAUSE) if loss == BY_HAND else CAUSE
        yield finding(claim, cause, term.cite(says, 0), place=term.samples[0].place)
        return


_BATCH = (Summary("0", (32, 8), "float32"), Summary("1", (32,), "float32"))


def _run(*shapes: Shape, loss: str = "mse_loss", others: tuple[LossInput, ...] = ()) -> Run:
    given = (LossInput(loss, "addmm", broadcast=shapes), *others)
    return recorded(sampled(3, losses=given, batch=_BATCH))


_STEP = """
x: batch/0 (32, 8)
y: batch/1 {target}
c: outside (32)
w: parameter:fc.weight (1, 8)
o (32, 1) = mm(x, w) in fc
d {result} = {name}(o, {other}) @ 25
s {result} = abs(d)
loss () = mean(s)
"""


def _step(
    target: str = "(32)", result: str = "(32, 32)", name: str = "sub", other: str = "y"
) -> Run:
    text = _STEP.format(target=target, result=result, name=name, other=other)
    return captured(step_of(text))


FIRES = {
    "a loss by hand, in a captured step": _step(),
    "a weighted error, in a captured step": _step(name="mul"),
    "a column against a row": _run((32, 1), (32,), (32, 32)),
    "a row against a column": _run((32,), (32, 1), (32, 32), loss="l1_loss"),
    "written by hand": _run((32, 1), (32,), (32, 32), loss="difference"),
}

SILENT = {
    "near miss: a column of labels": _step("(32, 1)", "(32, 1)"),
    "near miss: fixed centres, in a captured step": _step(other="c"),
    "equal shapes": _run(),
    "near miss: all pairs on purpose": _run((32, 1), (1, 32), (32, 32)),
    "near miss: one target per image": _run((8, 16, 16, 3), (8, 1, 1, 3), (8, 16, 16, 3)),
    "near miss: a scalar target": _run((32, 1), (1,), (32, 1)),
    "near miss: distances to 32 fixed centres": _run(
        (32, 1), (32,), (32, 32), loss="difference", others=(LossInput("mse_loss"),)
    ),
    "near miss: a batch of one": _run((1, 1), (1,), (1, 1)),
}
