from dataclasses import replace

from traindx.analysis.recordings.traces import latest_models, latest_optimizers, per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Model, Optimizer, Process
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "missing-optimizer-step"
ENOUGH = 3  # samples in which its gradients wait
STEPS = 50  # of the others; one that comes in later, in a second stage, is not due yet


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """An optimizer takes no step while others do, and gradients wait in its parameters.

    ## What it detects
    Of several optimizers, one that was never stepped during 50 steps or more of the others, while
    its parameters, which no other optimizer holds, had gradients whenever a step was looked at.

    ## Why it matters
    A part of the model, often the generator of an adversarial pair, stays as it was initialised.

    ## What to do
    Step it after the backward pass that is meant for it.

    ## When it is wrong
    An optimizer for a later stage has no gradients yet, or shares its parameters with the one of
    the first stage; neither is reported.
    """
    stepped = {s.optimizer for s in process.samples}
    steps = process.counts.steps if process.counts is not None else 0
    for optimizer in latest_optimizers(process) if steps >= STEPS else ():
        waiting = [s for s in process.samples if optimizer.id in s.pending]
        is_idle = optimizer.id not in stepped and optimizer.size > 0 and not optimizer.shared
        if not is_idle or len(waiting) < ENOUGH or 2 * len(waiting) < len(process.samples):
            continue
        models = latest_models(process)
        owned = [m.type for m in models if optimizer.id in {p.optimizer for p in m.parameters}]
        of = f" of {owned[0]}" if owned else ""
        says = f"{optimizer.type} with {optimizer.size} parameters{of} took 0 of {steps} steps"
        waits = f"its parameters have gradients in {len(waiting)} samples"
        yield finding(
            f"The {optimizer.type} optimizer{of} ({optimizer.size} parameters) never takes a step",
            CAUSE,
            cite_record(process, optimizer.line, says, steps=0),
            cite_record(process, waiting[0].line, waits, step=waiting[0].step),
            onset=0.0,
            place=waiting[0].place,
        )


def _process(*, pending: tuple[int, ...] = (1,), shared: int = 0) -> Run:
    first = watched(*weights("0.weight"), pending=pending)
    other = Model(5, id=1, type="Generator", parameters=tuple(weights("a.weight", optimizer=1)))
    second = Optimizer(6, id=1, type="Adam", size=1, shared=shared)
    return recorded(
        replace(first, models=(*first.models, other), optimizers=(*first.optimizers, second))
    )


FIRES = {"the generator's": _process()}

SILENT = {
    "near miss: for a later stage, without gradients": _process(pending=()),
    "near miss: for a later stage, over the same parameters": _process(shared=1),
    "one optimizer": recorded(watched(*weights("0.weight"))),
}
