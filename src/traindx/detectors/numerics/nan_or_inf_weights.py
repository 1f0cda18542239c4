from dataclasses import replace

from traindx.analysis.checkpoints import RUNNING, cite_broken, is_broken, last_sound
from traindx.examples import Architecture, Tensor, with_checkpoints
from traindx.registry import Evidence, Findings, Run, detector, finding, suggested

SHOWN = 4
IN_STATISTICS = suggested(moderate="nan-in-data", weak="fp16-overflow")
IN_WEIGHTS = suggested(weak="lr-too-high unstable-operation nan-in-data")


@detector(needs=("checkpoint",), suggests=tuple(IN_WEIGHTS | IN_STATISTICS))
def check(run: Run) -> Findings:
    """Saved weights are NaN or infinite.

    ## What it detects
    Parameters or running statistics of the last checkpoint that are not finite, and whether the
    checkpoint before was still sound.

    ## Why it matters
    Such a model gives NaN for every input, and training on from it cannot recover.

    ## What to do
    Go back to the last sound checkpoint and lower the learning rate, clip, or check the batch that
    follows. Running statistics alone that are not finite point to the input of a single batch.

    ## When it is wrong
    Masks and observers hold infinities on purpose; only names of learnt parameters are judged by
    those. A parameter that is never used may be NaN without harm.
    """
    if not run.checkpoints:
        return
    latest = run.checkpoints[-1]
    broken = [t for t in latest.tensors if is_broken(t)]
    if not broken:
        return
    sound = last_sound(run.checkpoints[:-1], {t.name for t in broken})
    evidence = [cite_broken(t, latest) for t in broken[:SHOWN]]
    if sound is not None:
        evidence.append(Evidence("the same parameters are finite here", sound.artifact))
    only_running = all(RUNNING.search(t.name) for t in broken)
    what = "running statistics" if only_running else "parameters"
    yield finding(
        f"{len(broken)} {what} of the last checkpoint are NaN or infinite ({broken[0].name} …)",
        IN_STATISTICS if only_running else IN_WEIGHTS,
        *evidence,
        onset=latest.step,
    )


def _example(*tensors: Tensor) -> Run:
    before = tuple(replace(t, statistics={"nan": 0.0, "inf": 0.0}) for t in tensors)
    saved = (Architecture(before, "a_1.pt", step=1), Architecture(tensors, "a_2.pt", step=2))
    return with_checkpoints(*saved)


_SOUND = Tensor("fc.weight", (8, 8), "float32", {"nan": 0.0, "inf": 0.0, "count": 64.0})
_LOST = Tensor("out.bias", (8,), "float32", {"nan": 8.0, "inf": 0.0, "count": 8.0})

FIRES = {
    "a layer is NaN": _example(_SOUND, _LOST),
    "only the running statistics": _example(_SOUND, replace(_LOST, name="bn.running_var")),
}

SILENT = {
    "near miss: an attention mask of infinities": _example(
        _SOUND, Tensor("attn.mask", (4, 4), "float32", {"nan": 0.0, "inf": 6.0, "count": 16.0})
    ),
    "near miss: an observer that saw nothing": _example(
        _SOUND, Tensor("act.min_val", (), "float32", {"nan": 0.0, "inf": 1.0, "count": 1.0})
    ),
    "a sound model": _example(_SOUND),
}
