import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from traindx.examples import make_run
from traindx.model.findings import Evidence, Strength, finding, suggested
from traindx.model.run import Architecture, Tensor
from traindx.registry import Findings, Run, detector

SHOWN = 4
# filled with infinity on purpose: masks, observers that have seen nothing, running extremes
_BY_DESIGN = re.compile(
    r"mask|causal|tril|triu|cache|observer|min_val|max_val|amin|amax|best|queue|bias_table",
    re.IGNORECASE,
)
_LEARNT = re.compile(r"(?:^|[._])(?:weight|bias|gamma|beta|kernel|w|b|proj)(?:_\w{1,16})?$")
_RUNNING = re.compile(r"running_(?:mean|var)$|moving_(?:mean|variance)$")


@detector(
    needs=("checkpoint",),
    suggests=("lr-too-high", "unstable-operation", "nan-in-data", "fp16-overflow"),
)
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
    broken = [t for t in latest.tensors if _is_broken(t)]
    if not broken:
        return
    sound = _last_sound(run.checkpoints[:-1], {t.name for t in broken})
    evidence = [_cite(t, latest) for t in broken[:SHOWN]]
    if sound is not None:
        evidence.append(Evidence("the same parameters are finite here", sound.artifact))
    only_running = all(_RUNNING.search(t.name) for t in broken)
    what = "running statistics" if only_running else "parameters"
    yield finding(
        f"{len(broken)} {what} of the last checkpoint are NaN or infinite ({broken[0].name} …)",
        _suggests(only_running),
        *evidence,
        onset=latest.step,
    )


def _suggests(only_running: bool) -> Mapping[str, Strength]:
    if only_running:
        return {"nan-in-data": Strength.MODERATE, "fp16-overflow": Strength.WEAK}
    return suggested(weak="lr-too-high unstable-operation nan-in-data")


def _is_broken(tensor: Tensor) -> bool:
    nan, inf = tensor.statistics.get("nan", 0.0), tensor.statistics.get("inf", 0.0)
    if _BY_DESIGN.search(tensor.name):
        return False
    is_learnt = _LEARNT.search(tensor.name) or _RUNNING.search(tensor.name)
    return nan > 0 or (inf > 0 and is_learnt is not None)


def _cite(tensor: Tensor, where: Architecture) -> Evidence:
    nan, inf = tensor.statistics.get("nan", 0.0), tensor.statistics.get("inf", 0.0)
    looked_at = tensor.statistics.get("count", float(tensor.size))
    says = f"{tensor.name} has {nan:.0f} NaN and {inf:.0f} infinite of {looked_at:.0f} values"
    return Evidence(says, where.artifact, tensor.name, values={"nan": nan, "inf": inf})


def _last_sound(checkpoints: Sequence[Architecture], names: set[str]) -> Architecture | None:
    for checkpoint in reversed(checkpoints):
        same = [t for t in checkpoint.tensors if t.name in names and t.statistics]
        if same and not any(_is_broken(t) for t in same):
            return checkpoint
    return None


def _example(*tensors: Tensor) -> Run:
    before = tuple(replace(t, statistics={"nan": 0.0, "inf": 0.0}) for t in tensors)
    saved = (Architecture(before, "a_1.pt", step=1), Architecture(tensors, "a_2.pt", step=2))
    return replace(make_run(architecture=saved[1]), checkpoints=saved)


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
