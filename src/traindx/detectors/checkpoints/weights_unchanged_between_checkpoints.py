import re

from traindx.analysis.checkpoints import block_of, causes_of_unchanged, moved_and_still
from traindx.examples import with_checkpoints
from traindx.model.run import Architecture, Tensor, file_name
from traindx.registry import Evidence, Finding, Findings, Run, Strength, detector, finding

SHOWN = 4
_ADAPTER = re.compile(r"lora|adapter|prompt|prefix|ia3|dora", re.IGNORECASE)
_HEAD = re.compile(r"(?:^|\.)(?:head|classifier|fc|cls|score|lm_head|out|output)(?:\.|$)", re.I)


@detector(
    needs=("checkpoints",),
    suggests=("frozen-parameters", "parameters-not-in-optimizer", "half-precision-weights"),
)
def check(run: Run) -> Findings:
    """Some weights never moved between two checkpoints while others did.

    ## What it detects
    Weight matrices that are equal to the last bit in the first and the last checkpoint of a run in
    which others changed.

    ## Why it matters
    They do not learn: frozen, absent from the optimizer, without a gradient, or with updates too
    small for half precision.

    ## What to do
    Compare `[n for n, p in model.named_parameters() if not p.requires_grad]` and the optimizer's
    groups with what you meant to train.

    ## When it is wrong
    Freezing is common. Adapters on a fixed model are left alone, and a whole block or the first
    layers are only a remark. A head alone that stays as it was made is rarely meant.
    """
    moved, still = moved_and_still(run.checkpoints[0], run.checkpoints[-1])
    if moved and still and not any(_ADAPTER.search(t.name) for t in (*moved, *still)):
        yield _finding(run, moved, still)


def _finding(run: Run, moved: list[Tensor], still: list[Tensor]) -> Finding:
    first, last = run.checkpoints[0], run.checkpoints[-1]
    order = {t.name: i for i, t in enumerate(last.tensors)}
    places = [order[t.name] for t in still]
    reached = [order[t.name] for t in moved]
    is_odd = min(places) > max(reached) and all(_HEAD.search(t.name) for t in still)
    is_meant = max(places) < min(reached) or not {*map(block_of, still)} & {*map(block_of, moved)}
    strength = Strength.WEAK if is_meant and not is_odd else Strength.MODERATE
    shown = still[:SHOWN]
    names = ", ".join(t.name for t in shown)
    says = f"unchanged: {names}" + (" and others" if len(still) > len(shown) else "")
    changed = f"changed: {', '.join(t.name for t in moved[:SHOWN])}"
    return finding(
        f"{len(still)} of {len(still) + len(moved)} weight matrices did not change between "
        f"{file_name(first.artifact)} and {file_name(last.artifact)}",
        causes_of_unchanged(run, still, moved, strength),
        Evidence(says, last.artifact, shown[0].name),
        Evidence(changed, last.artifact, moved[0].name),
        strength=strength,
        is_symptom=is_odd,
    )


def _tensor(name: str, checksum: float, **more: float) -> Tensor:
    figures = {"checksum": checksum, "count": 4096.0, "norm": 3.0, **more}
    return Tensor(name, (64, 64), "float32", figures)


def _example(before: dict[str, float], after: dict[str, float], **more: float) -> Run:
    saved = tuple(
        Architecture(tuple(_tensor(n, c, **more) for n, c in each.items()), f"step{i}.pt", step=i)
        for i, each in ((100, before), (900, after))
    )
    return with_checkpoints(*saved)


_BODY = {"encoder.0.weight": 1.0, "encoder.1.weight": 2.0}

FIRES = {
    "the head never moved": _example({**_BODY, "head.weight": 3.0}, {
        "encoder.0.weight": 11.0, "encoder.1.weight": 12.0, "head.weight": 3.0,
    }),
    "a layer in the middle of a block": _example(
        {**_BODY, "encoder.2.weight": 3.0},
        {"encoder.0.weight": 11.0, "encoder.1.weight": 2.0, "encoder.2.weight": 13.0},
    ),
    "a frozen backbone is a remark": _example(
        {**_BODY, "decoder.weight": 3.0}, {**_BODY, "decoder.weight": 13.0}
    ),
}  # fmt: skip

SILENT = {
    "near miss: an adapter on a fixed model": _example(
        {**_BODY, "encoder.0.lora_B": 3.0}, {**_BODY, "encoder.0.lora_B": 13.0}
    ),
    "near miss: fixed positions": _example(
        {"pos_embed": 1.0, "fc.weight": 2.0}, {"pos_embed": 1.0, "fc.weight": 12.0}
    ),
    "near miss: two copies of one checkpoint": _example(_BODY, _BODY),
    "near miss: a large table of which a sample was read": _example(
        _BODY, {**_BODY, "encoder.0.weight": 11.0}, sampled=1.0
    ),
    "all of it moved": _example(_BODY, {"encoder.0.weight": 11.0, "encoder.1.weight": 12.0}),
}
