from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traindx.analysis.metrics.jumps import jump_between
from traindx.analysis.metrics.objective import finite_objective
from traindx.analysis.recordings.input_batches import first_layer_input, input_change
from traindx.analysis.recordings.observations import processes_of
from traindx.examples import decay, join, recorded, sampled
from traindx.model.recording import Activation, Process, Sample, Summary
from traindx.model.run import Series
from traindx.registry import Finding, Findings, Run, Strength, cite, cite_record, detector, finding

CAUSE = "data-distribution-change"
POINTS = 60  # of the loss


@detector(needs=("recording", "loss"), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The inputs of the model shift to another mean or spread in the middle of the run.

    ## What it detects
    The inputs as the first layer gets them: from one sample on their mean lies a whole spread away
    from all before, or their spread is doubled or halved, and stays there; between the two samples
    the training loss jumps threefold or more.

    ## Why it matters
    What was learnt was learnt for other inputs. The model starts again, and what it is evaluated
    on is no longer what it is trained on.

    ## What to do
    Look for what begins at that step: another file or shard, a transform that depends on the epoch,
    a normalisation that is applied twice or no more.

    ## When it is wrong
    A curriculum changes its inputs on purpose; where the loss follows smoothly nothing is said.
    States of a policy and outputs of a generator change as these learn, and are left alone.
    """
    loss = finite_objective(run, POINTS)
    if loss is None:
        return
    for process in processes_of(run):
        seen = [(s, a) for s in process.samples if (a := first_layer_input(s)) is not None]
        at = input_change([a for _, a in seen])
        if at is None or len({s.optimizer for s, _ in seen}) != 1:
            continue
        jump = jump_between(loss, seen[at - 1][0].step, seen[at][0].step)
        if jump is not None:
            yield _finding(process, seen, at, loss, jump)
            return


def _finding(
    process: Process, seen: Sequence[tuple[Sample, Activation]], at: int, loss: Series, jump: int
) -> Finding:
    (_, old), (sample, new) = seen[at - 1], seen[at]
    says = (
        f"the first layer's input has mean {new.mean:.3g} and std {new.std:.3g}; in all {at} "
        f"samples before it was about {old.mean:.3g} and {old.std:.3g}"
    )
    course = (
        f"{loss.origin.name} jumps from {np.median(loss.values[max(0, jump - 5) : jump]):.4g} to "
        f"{loss.values[jump]:.4g} at {loss.when(jump)}"
    )
    return finding(
        f"The inputs change at {loss.when(jump)}: mean {new.mean:.3g} and std {new.std:.3g} "
        f"instead of {old.mean:.3g} and {old.std:.3g}",
        {CAUSE: Strength.STRONG},
        cite_record(process, sample.line, says, step=sample.step),
        cite(loss, course, jump),
        onset=loss.steps[jump],
    )


def _run(mean: float, std: float, *, jump: float = 6.0, inner: bool = False) -> Run:
    """Inputs that are normalised for 120 steps, and then have another mean and spread."""
    loss = join(decay(120, 2.0, 0.1, noise=0.0), jump * decay(80, 1.0, 0.2, noise=0.0))
    steps = (0, 1, 5, 20, 60, 100, 140, 180)
    layer = Activation("0", "input of addmm", (32, 16) if inner else (32, 7), mean=mean, std=std)
    early = [replace(layer, mean=0.02 * (i % 2), std=1.0) for i in range(6)]
    layers = [(given,) for given in (*early, layer, layer)]
    batch = (Summary("0", (32, 7), "float32", mean=0.0, std=1.0),)
    process = sampled(8, step=lambda i: steps[i], batch=batch, activations=lambda i: layers[i])
    return recorded(process, loss_train=loss)


FIRES = {"shifted": _run(3.0, 2.0), "shrunk": _run(0.0, 0.1)}

SILENT = {
    "the same": _run(0.01, 1.0),
    "near miss: a little wider": _run(0.2, 1.4),
    "near miss: the loss does not jump": _run(3.0, 2.0, jump=0.1),
    "near miss: an inner value, which training changes": _run(3.0, 2.0, inner=True),
}
