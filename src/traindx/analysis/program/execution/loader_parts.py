"""What a DataLoader keeps: the samplers that it is given, or makes where it is given none."""

from __future__ import annotations

from traindx.analysis.program.execution.truth import is_none, truth_of
from traindx.analysis.program.execution.values import Known, Result, Value

HOME = "torch.utils.data."
POSITIONS = {"shuffle": 2, "sampler": 3, "batch_sampler": 4}
SAMPLERS = frozenset({"DistributedSampler", "RandomSampler", "SequentialSampler", "BatchSampler",
                      "WeightedRandomSampler", "SubsetRandomSampler"})  # fmt: skip


def attribute(owner: Value, name: str) -> Value | None:
    """Return the sampler of a loader or batch sampler; None where that is not known."""
    if not isinstance(owner, Result) or owner.receiver is not None or "**" in owner.kwargs:
        return None
    if owner.maker == f"{HOME}BatchSampler" and name == "sampler":
        return owner.kwargs.get("sampler") or (owner.args[0] if owner.args else None)
    if owner.maker != f"{HOME}DataLoader" or name not in ("sampler", "batch_sampler"):
        return None
    given = _given(owner, name)
    if is_none(given) is False:
        return given
    is_default = name == "sampler" and is_none(given)
    shuffles = truth_of(_given(owner, "shuffle")) if is_default else None
    if shuffles is None or not owner.args:
        return None
    # the order in which a batch sampler draws is not asked of this one, which torch makes anyway
    kind = "RandomSampler" if shuffles else "SequentialSampler"
    return Result(f"{HOME}{kind}", args=(owner.args[0],))


def _given(loader: Result, name: str) -> Value:
    place = POSITIONS[name]
    if name in loader.kwargs:
        return loader.kwargs[name]
    return loader.args[place] if place < len(loader.args) else Known(None)


def is_sampler_of(value: Result, wanted: tuple[str, ...]) -> bool | None:
    """Tell whether a sampler of torch is of one of some classes; None where nobody can say."""
    kind = value.maker.removeprefix(HOME)
    if value.receiver is not None or kind not in SAMPLERS:
        return None
    if value.maker in wanted or f"{HOME}Sampler" in wanted:
        return True
    is_known = all(name.removeprefix(HOME) in SAMPLERS for name in wanted)
    return False if is_known else None
