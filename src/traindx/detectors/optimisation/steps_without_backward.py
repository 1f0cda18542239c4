from dataclasses import replace

from traindx.analysis.recordings.owners import are_all_seen_still
from traindx.analysis.recordings.traces import latest_optimizers, per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Counts, Process
from traindx.registry import Findings, Run, cite_record, detector, finding

ENOUGH = 10  # steps


@detector(needs=("recording",), suggests=("missing-backward",))
@per_process
def check(process: Process) -> Findings:
    """Steps are taken, no backward pass ever ran, and no weight changed.

    ## What it detects
    Ten or more optimizer steps in a process in which `backward` was never called and no weight
    changed.

    ## Why it matters
    Without gradients a step does nothing.

    ## What to do
    Call `loss.backward()` before `optimizer.step()`.

    ## When it is wrong
    Gradients that come from elsewhere (`torch.autograd.grad`, another engine, evolution) move the
    weights; where they move, or that is not known, nothing is said.
    """
    counts = process.counts
    if counts is None or counts.backwards or counts.steps < ENOUGH or counts.has_moved:
        return
    if counts.has_moved is None and not are_all_seen_still(process):
        return
    if any(g is not None for s in process.samples for g in s.grad_norms):
        return
    place = next((o.place for o in latest_optimizers(process) if o.place), None)
    says = f"{counts.steps} optimizer steps, 0 backward passes, no weight changed"
    yield finding(
        f"The optimizer took {counts.steps} steps but backward() was never called",
        "missing-backward",
        cite_record(process, counts.line, says, steps=counts.steps, backwards=0),
        onset=0.0,
        place=place,
    )


def _run(
    backwards: int, has_moved: bool | None, grad: float | None = None, is_still: bool = True
) -> Run:
    still = ("0.weight",) if is_still else ()
    process = watched(*weights("0.weight"), grads=(grad,), still=still)
    return recorded(
        replace(process, counts=Counts(9, steps=80, backwards=backwards, has_moved=has_moved))
    )


FIRES = {"never": _run(0, False), "never, by the steps that were looked at": _run(0, None)}

SILENT = {
    "a right loop": _run(80, True),
    "near miss: gradients from autograd.grad": _run(0, True),
    "near miss: whether weights move is not known": _run(0, None, is_still=False),
    "near miss: gradients are there": _run(0, False, grad=0.1),
}
