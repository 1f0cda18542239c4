from math import sqrt

from traindx.analysis.recordings.clamped_gradients import clamped_gradients
from traindx.analysis.recordings.traces import named, per_process
from traindx.examples import recorded
from traindx.model.recording import Model, Parameter, Process, Sample
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "gradient-clipping-too-tight"
STILL = 1e-3  # of a weight, in one step: the usual update; below a tenth of it training stalls


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """Every element of the gradients is clamped to the same tiny size.

    ## What it detects
    Parameters of different sizes whose gradient norm is the root of their number of elements times
    one and the same value, in nearly every sample, while updates are tiny: each element is cut to
    that value. It may be done by `clip_grad_value_`, by a hook, or in place.

    ## Why it matters
    Only the signs of the gradients are left. With a limit this small the weights hardly move, and
    the loss stays where it is.

    ## What to do
    Clip the norm of all gradients together (`clip_grad_norm_(…, 1.0)`), or raise the limit far
    above the usual element.

    ## When it is wrong
    Training by signs on purpose works with a limit that moves the weights; there nothing is said.
    """
    found = clamped_gradients(process)
    if found is None or not found.ratio < STILL:
        return
    shown = found.traces[0]
    says = (
        f"every element of the gradient of {named(found.traces)} has the size {found.limit:.3g} "
        f"in nearly all of {len(shown.of_owner().samples)} samples"
    )
    moved = f"an update changes a weight by {found.ratio:.1g} of its size"
    line = shown.samples[-1].line
    yield finding(
        f"Gradients are clamped to {found.limit:.3g} in every element, so weights hardly move",
        CAUSE,
        cite_record(process, line, says, limit=found.limit),
        cite_record(process, line, moved, ratio=found.ratio),
        place=shown.samples[-1].place,
    )


def _run(*sizes: int, limit: float = 1e-5, wobble: float = 0.0, ratio: float = 2e-5) -> Run:
    parameters = tuple(
        Parameter(f"{i}.weight", (n,), "float32", True, 0) for i, n in enumerate(sizes)
    )
    names = tuple(p.name for p in parameters)
    samples = tuple(
        Sample(
            9 + i, 10 * i, 0, 0.13, names,
            tuple(limit * sqrt(n) * (1 + wobble * ((i + k) % 3)) for k, n in enumerate(sizes)),
            (1.0,) * len(sizes), (ratio,) * len(sizes),
        )
        for i in range(8)
    )  # fmt: skip
    return recorded(Process(models=(Model(1, 0, "Net", 0, parameters),), samples=samples))


FIRES = {
    "a hook that clamps": _run(32, 1, 1024),
    "clip_grad_value_ with a tiny limit": _run(64, 10, limit=1e-6, ratio=1e-7),
}

SILENT = {
    "gradients as they come": _run(32, 1, 1024, wobble=0.2),
    "near miss: a limit that lets weights move": _run(32, 1, 1024, limit=0.1, ratio=0.01),
    "near miss: one parameter with equal elements": _run(32),
}
