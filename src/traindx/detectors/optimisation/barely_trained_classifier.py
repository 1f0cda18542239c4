from dataclasses import replace

import numpy as np

from traindx.analysis.curves import curve
from traindx.analysis.metrics.chance import is_unbent_from_chance
from traindx.analysis.recordings.observations import last_step
from traindx.analysis.recordings.traces import traces_of
from traindx.analysis.recordings.weight_updates import guess_loss, travelled
from traindx.examples import Counts, Ending, LossInput, Summary, decay, recorded, watched, weights
from traindx.model.run import Floats
from traindx.registry import Findings, Run, Strength, cite, cite_record, detector, finding

TRAVELLED = 0.3  # of the weights' norm, over the whole run, if all steps went the same way
POINTS = 60
ENOUGH = 4  # samples


@detector(needs=("recording", "loss"), suggests=("lr-too-low",))
def check(run: Run) -> Findings:
    """A classifier that starts from nothing is still near its start when the run is over.

    ## What it detects
    A run that ended by itself, whose loss began at that of a guess, fell by about a third at most,
    in a line that does not bend, and whose steps, even if all went the same way, add up to less
    than a third of the weights' norm. What learns from nothing moves by twice the norm and more.

    ## Why it matters
    What a network learns shows as a bend: fast at first, slower later. A line means that the budget
    of steps is far too small for their size.

    ## What to do
    Raise the learning rate tenfold until a step changes the weights by about a thousandth; or train
    ten times as long.

    ## When it is wrong
    Fine-tuning starts below the loss of a guess and is left alone. A run that was cut off on
    purpose to try the program looks the same.
    """
    loss, main = run.objective(), run.recording.main if run.recording is not None else None
    ending = run.recording.ending if run.recording is not None else None
    if loss is None or main is None or (ending is not None and ending.exit_code != 0):
        return
    finite = loss.finite()
    chance = guess_loss(main)
    if len(finite) < POINTS or chance is None or not is_unbent_from_chance(finite.values, chance):
        return
    moved = [t for t in traces_of(main) if t.is_owned and t.is_matrix and t.has_gradient]
    far = travelled(moved, last_step(main) + 1, ENOUGH)
    if far is None or far > TRAVELLED:
        return
    c = curve(finite.values)
    says = f"{finite.origin.name} fell from {c.start_value:.4g} to {c.end_value:.4g} in a line"
    whole = f"all steps together change the weights by at most {far:.2g} of their norm"
    yield finding(
        f"The model is barely trained: {whole} and the loss still falls in a line",
        {"lr-too-low": Strength.STRONG},
        cite(finite, says, 0, -1, start=c.start_value, end=c.end_value, chance=chance),
        cite_record(main, moved[0].samples[-1].line, whole, travelled=far),
    )


_LINE = np.linspace(0.69, 0.58, 160) + 0.02 * np.sin(np.arange(160) * 1.7)


def _run(loss: Floats, ratio: float, exit_code: int = 0) -> Run:
    given = LossInput("cross_entropy", "addmm", Summary(shape=(32, 2)), classes=2)
    names = weights("0.weight", "2.weight")
    process = watched(*names, count=8, update_ratios=(ratio, ratio), losses=(given,))
    made = replace(process, counts=Counts(99, steps=len(loss)))
    return recorded(made, ending=Ending(exit_code=exit_code), loss_train=loss)


FIRES = {
    "a line that ends early": _run(_LINE, 3e-4),
    "a rate ten times larger": _run(_LINE, 1.2e-3),
}

SILENT = {
    "near miss: usual steps, a hard task": _run(_LINE, 1e-2),
    "near miss: interrupted": _run(_LINE, 3e-4, exit_code=130),
    "near miss: fine-tuning starts low": _run(_LINE - 0.4, 3e-4),
    "learns": _run(decay(160, 0.69, 0.1), 3e-4),
}
