"""Where a tensor or a model was left on another device."""

from traindx.analysis.errors.culprits import Culprit, site_of
from traindx.analysis.errors.messages import KnownError
from traindx.analysis.errors.written_calls import only, program_calls
from traindx.analysis.program import project_of
from traindx.analysis.program.devices import model_left_behind, never_moved
from traindx.model.run import Run
from traindx.tracebacks import own_frames


def _made_empty(run: Run) -> Culprit | None:
    """The one place of the source that makes or moves something to the meta device."""
    return only(
        [
            call.blamed(f"`{call.text}` creates tensors without values", as_a_whole=True)
            for call in program_calls(run)
            if "meta" in call.values() or call.method == "init_empty_weights"
        ]
    )


def stray_tensor(known: KnownError) -> Culprit | None:
    """Return the line that leaves a tensor or the model on another device."""
    if known.kind == "meta":
        return _made_empty(known.run)
    project = project_of(known.run)
    if known.kind != "stray model":
        for culprit in never_moved(project, site_of(known.run, known.failure)):
            return culprit
    if known.kind != "stray input":
        code = "\n".join(f.code for f in own_frames(known.failure))
        for culprit in model_left_behind(project, code):
            return culprit
    return None
