from collections.abc import Callable
from dataclasses import replace

from traindx.analysis.recordings.late_clipping import late_clips
from traindx.analysis.recordings.observations import spans
from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Place, Process
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "clip-after-step"


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """Gradients are clipped when the optimizer has used them already.

    ## What it detects
    Calls of `clip_grad_norm_` in nearly every sampled step, each of them before the backward pass
    of its step or after the weights have changed, and none in between.

    ## Why it matters
    The gradients that reach the optimizer are not clipped at all: the protection that the code
    seems to have is not there, and one large gradient can derail the run.

    ## What to do
    Clip between `backward()` and `optimizer.step()`; in a framework, in the hook before the step.

    ## When it is wrong
    Several optimizers that step in turns are left alone.
    """
    late = late_clips(process)
    if late:
        says = (
            f"in {len(late)} of {len(process.samples)} sampled steps, {spans(late)}, gradients "
            "were clipped after the update, or before backward"
        )
        yield finding(
            "Gradients are clipped after the step that used them",
            CAUSE,
            cite_record(process, late[0].line, says, step=late[0].step),
            place=late[0].late_clip,
        )


_PLACE = Place("train.py", 12, "", "clip_grad_norm_(model.parameters(), 1.0)")


def _run(is_late: Callable[[int], bool], optimizers: int = 1) -> Run:
    process = watched(*weights("0.weight"), count=8)
    samples = tuple(
        replace(s, late_clip=_PLACE if is_late(i) else None, optimizer=i % optimizers)
        for i, s in enumerate(process.samples)
    )
    return recorded(replace(process, samples=samples))


FIRES = {
    "a callback after the batch": _run(lambda i: True),
    "before backward, from the second step on": _run(lambda i: i > 0),
}

SILENT = {
    "in time": _run(lambda i: False),
    "near miss: once": _run(lambda i: i == 3),
    "near miss: two optimizers in turns": _run(lambda i: True, optimizers=2),
}
