from dataclasses import replace

from traindx.analysis.recordings.broken_steps import are_gradients_finite
from traindx.analysis.recordings.traces import latest_optimizers, per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Counts, NonFinite, Process
from traindx.registry import Findings, Strength, cite_record, detector, finding

ENOUGH = 10  # backward passes of a run that has ended; attacks and saliency maps need a few
LONG = 600  # of a run that goes on: nobody accumulates over more micro-batches


@detector(needs=("recording",), suggests=("missing-optimizer-step", "loss-scale-collapse"))
@per_process
def check(process: Process) -> Findings:
    """Gradients were computed many times and no step was taken; the weights never changed.

    ## What it detects
    A process with an optimizer, in which `backward` ran ten times or more (600 times while it still
    runs), no optimizer was stepped, and no weight changed.

    ## Why it matters
    The gradients are thrown away. The model stays as it was initialised, without any error.

    ## What to do
    Call `optimizer.step()` after `backward()`.

    ## When it is wrong
    Weights that are updated by hand do move and are left alone. So are programs that have no
    optimizer (saliency, attacks), and gradients that are not finite. A gradient scaler may skip
    every step; where losses went through one, both are named.
    """
    counts = process.counts
    if counts is None or counts.steps or counts.has_moved or not latest_optimizers(process):
        return
    enough = ENOUGH if counts.is_end else LONG
    if counts.backwards < enough or process.nonfinite or not are_gradients_finite(process):
        return
    place = next((o.place for o in latest_optimizers(process) if o.place), None)
    is_seen = counts.has_moved is False
    may_skip = counts.scaled > 0
    still = "no weight changed" if is_seen else "whether weights changed is not known"
    says = f"{counts.backwards} backward passes, 0 optimizer steps, {still}"
    yield finding(
        f"Backward ran {counts.backwards} times and no optimizer took a step",
        {"missing-optimizer-step": Strength.MODERATE, "loss-scale-collapse": Strength.MODERATE}
        if may_skip
        else {"missing-optimizer-step": Strength.STRONG},
        cite_record(process, counts.line, says, backwards=counts.backwards, steps=0),
        shows="missing-optimizer-step" if is_seen and not may_skip else None,
        onset=0.0,
        place=place,
    )


def _process(**counted: object) -> Process:
    told = {"backwards": 200, "steps": 0, "has_moved": False, "is_end": True, **counted}
    process = watched(*weights("0.weight", "2.weight"), still=("0.weight", "2.weight"))
    return replace(process, counts=Counts(99, **told))  # type: ignore[arg-type]


FIRES = {
    "never": recorded(_process()),
    "never, still running": recorded(_process(backwards=5000, is_end=False)),
    "on both ranks": recorded(_process(), _process()),
}

SILENT = {
    "stepped": recorded(_process(steps=200, has_moved=True)),
    "near miss: accumulation goes on": recorded(_process(backwards=256, is_end=False)),
    "near miss: updated by hand": recorded(_process(has_moved=True)),
    "near miss: saliency, without an optimizer": recorded(replace(_process(), optimizers=())),
    "near miss: a scaler skips every step": recorded(
        replace(_process(), nonfinite=(NonFinite(50, seen_in="gradient"),))
    ),
}
