from dataclasses import replace

from traindx.analysis.recordings.optimizer_groups import holds_copies
from traindx.analysis.recordings.traces import latest_optimizers, per_process
from traindx.examples import recorded, resampled, watched, weights
from traindx.model.recording import Optimizer, Process
from traindx.registry import Findings, Strength, cite_record, detector, finding, suggested

ENOUGH = 2  # samples after the first step, before which nothing can be left over
NEARLY_ALL = 0.9  # of them
TOO_RARELY = suggested(moderate="gradient-accumulation-unscaled", weak="missing-zero-grad")
PARTLY = 0.4  # of them, and as many samples more: cleared at times, stepped at every micro-batch


@detector(needs=("recording",), suggests=("missing-zero-grad", "gradient-accumulation-unscaled"))
@per_process
def check(process: Process) -> Findings:
    """Every step uses the gradients of all the steps before as well.

    ## What it detects
    Samples of one optimizer in which backward found the gradients that its last step had already
    used: in nine of ten it is never cleared; in some, of a single optimizer, it is cleared less
    often than it steps, which is a remark.

    ## Why it matters
    The gradient is a sum over the whole history: it grows, points to old errors, and the run gets
    unstable.

    ## What to do
    Call `optimizer.zero_grad()` once per step, before `backward()`.

    ## When it is wrong
    Two networks that train in turns leave gradients in each other; what counts is each optimizer's
    own parameters, and a share of such samples says nothing where there are two. Copies of the
    parameters in full precision get their gradients anew for every step and are left alone.
    """
    ids = sorted({s.optimizer for s in process.samples})
    kinds = {o.id: o.type for o in latest_optimizers(process)}
    for id in ids:
        samples = [s for s in process.samples if s.optimizer == id and s.carried is not None]
        later = samples[1:] if samples and not samples[0].carried else samples
        carried = [s for s in later if s.carried]
        share = len(carried) / max(1, len(later))
        is_always = share >= NEARLY_ALL
        is_partly = share >= PARTLY and len(later) >= 3 * ENOUGH and len(ids) == 1
        if len(carried) < ENOUGH or not (is_always or is_partly) or holds_copies(process, id):
            continue
        of = f" of {kinds.get(id, 'an optimizer')}" if len(kinds) > 1 and is_always else ""
        says = f"gradients{of} of the step before were still there in {len(carried)} of "
        says += f"{len(later)} steps"
        never = f"Gradients{of} are never zeroed, so each step adds to those of the step before"
        first = carried[0]
        yield finding(
            never if is_always else "Gradients are zeroed less often than the optimizer steps",
            "missing-zero-grad" if is_always else TOO_RARELY,
            cite_record(process, first.line, says, step=first.step, carried=len(carried)),
            strength=Strength.STRONG if is_always else Strength.MODERATE,
            is_symptom=is_always,
            place=first.place,
        )


def _process(*carried: bool | None) -> Process:
    return watched(
        *weights("0.weight", "2.weight"), count=len(carried), carried=lambda i: carried[i]
    )


def _gan() -> Process:
    """The second optimizer's steps leave gradients in the first one's network at times."""
    return resampled(_process(*[False, True] * 8), optimizer=lambda i: i % 3)


def _copies(free: int, strangers: int = 2) -> Process:
    """An optimizer of copies in full precision, beside a model that nobody holds."""
    names = [f"{i}.weight" for i in range(free)]
    process = watched(*weights(*names, optimizer=None), carried=True, count=8)
    return replace(process, optimizers=(Optimizer(1, 0, "Adam", 0, (), 2, strangers),))


FIRES = {
    "plain tensors in the optimizer": recorded(_copies(0)),
    "never cleared": recorded(_process(False, *[True] * 7)),
    "on two ranks": recorded(_process(*[True] * 6), _process(*[True] * 6)),
    "cleared every fourth step, a remark": recorded(_process(*[False, True, True, True] * 4)),
}

SILENT = {
    "cleared": recorded(_process(*[False] * 8)),
    "near miss: not known": recorded(_process(*[None] * 8)),
    "near miss: once at the start": recorded(_process(False, True, *[False] * 6)),
    "near miss: copies in full precision": recorded(_copies(2)),
    "near miss: networks in turns": recorded(_gan()),
}
