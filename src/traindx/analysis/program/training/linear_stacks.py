"""Stacks of layers that learn no more than one layer: nothing nonlinear stands between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Instance, Result, Value, constant, options_of
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.layers import (
    assigned,
    layer_kind,
    maker_name,
    parts_of,
    setting,
    size,
)
from traindx.analysis.program.training.linearity import (
    LayerRow,
    Linearity,
    expands,
    model_around,
    widens,
)
from traindx.analysis.program.training.program import Program, Story

ENOUGH = 3  # layers: two make a factorised map, and that is often meant
# models that are linear on purpose say so in the names of their class, chain or maker
MEANT = re.compile(
    r"deep_?linear|linear_?(net|model|map|auto|probe)|lora|adapter|factor|low_?rank|pca|affine",
    re.IGNORECASE,
)
# and so do two layers that make one on purpose
PAIR = re.compile(
    MEANT.pattern + r"|proj|down|up_|bottleneck|head|embed|query|value|key|logvar|\bmu\b|latent"
    r"|logit|tied",
    re.IGNORECASE,
)
CHAIN = 2  # pairs in a row: three linear layers that are one


@dataclass(frozen=True, slots=True, eq=False)
class LinearStack:
    """Layers in order with nothing nonlinear between them; `pairs` counts those of two in one."""

    layers: tuple[Value, ...]
    pairs: int = 0
    is_in_sequential: bool = False


def linear_stacks(program: Program) -> Iterator[LinearStack]:
    """Yield the layers of each program that are one linear map: all of a model, a chain, a pair."""
    parts = _parts(program)
    seen: set[object] = set()
    for story in program.stories:
        if is_test_file(story.execution.module):
            continue
        linearity = Linearity(story.events, story.flow)
        deep = _layers(_whole(parts, story, linearity) or _chain(story, linearity))
        pairs = [] if deep else [_layers(pair) for pair in _pairs(story, linearity)]
        places = {v.site.node for v in deep or [pair[0] for pair in pairs] if v.site is not None}
        if not places & seen and deep:
            yield LinearStack(deep)
        elif not places & seen and pairs:
            is_inside = any(a is pairs[0][0] for c in story.recall(_chains) for a in c.args)
            yield LinearStack(pairs[0], len(pairs), is_inside)
        seen |= places


def _layers(calls: Iterable[ProgramEvent]) -> tuple[Value, ...]:
    return tuple(e.receiver for e in calls if e.receiver is not None)


def _parts(program: Program) -> set[object]:
    """The classes of the project whose objects are a part of another model."""
    return {
        option.cls.node
        for other in program.stories
        for kept in assigned(other.events)
        for option in options_of(kept.value)
        if isinstance(option, Instance)
    }


def _whole(parts: set[object], story: Story, linearity: Linearity) -> list[ProgramEvent]:
    """Return the calls of the layers of a model that is linear as a whole and deep enough."""
    rows = [r for r in linearity.rows() if not _is_part(r, parts) and not _is_meant(story, r)]
    for row in sorted(rows, key=lambda r: -len(r.calls)):
        heads = [r for r in rows if r.calls[0] is row.calls[0]]
        every = list({id(e.receiver): e for r in heads for e in r.calls}.values())
        is_forked = len(row.calls) == 2 and widens(row.layers[0])
        calls = every if is_forked else list(row.calls)
        is_deep = len({id(e.receiver) for e in calls}) >= ENOUGH or _is_grown(story, row)
        if is_deep and not linearity.is_bent(row):
            return calls
    return []


def _chain(story: Story, linearity: Linearity) -> list[ProgramEvent]:
    """Return the calls of linear layers in a chain that is long, or wider inside than outside."""
    for row in linearity.chains():
        is_linear = all(layer_kind(layer) == "Linear" for layer in row.layers)
        count = len({id(layer) for layer in row.layers})
        is_deep = count >= ENOUGH or (count == len(row.calls) == CHAIN and expands(row))
        if is_deep and is_linear and not _is_scattered(row) and not _is_meant(story, row):
            return list(row.calls)
    return []


def _is_part(row: LayerRow, parts: set[object]) -> bool:
    model = model_around(row.calls[0])
    return _is_scattered(row) or (model is not None and model.cls.node in parts)


def _is_scattered(row: LayerRow) -> bool:
    """Tell whether a row goes through several models behind each other."""
    model = model_around(row.calls[0])
    is_loose = model is None and len({e.node for e in row.calls}) > 1
    return is_loose or any(model_around(e) is not model for e in row.calls)


def _is_grown(story: Story, row: LayerRow) -> bool:
    """Tell whether a loop of unknown length made the layers: two of them stand for many."""
    if len(row.calls) < 2:
        return False
    makers = story.recall(_by_result)
    made = [e for layer in dict.fromkeys(map(id, row.layers)) for e in makers.get(layer, ())]
    looped = [e for e in made if any(not loop.is_whole for loop in e.loops)]
    return len({e.node for e in looped}) < len(looped)


def _by_result(story: Story) -> dict[int, list[ProgramEvent]]:
    found: dict[int, list[ProgramEvent]] = {}
    for event in story.events:
        if event.result is not None:
            found.setdefault(id(event.result), []).append(event)
    return found


def _names(story: Story, layer: Result) -> list[str]:
    """Return the names of a layer, of the chain that it is in, and of the function that made it."""
    chains = [c for c in story.recall(_chains) if any(part is layer for part in parts_of(c))]
    return [*layer.names, maker_name(layer), *(name for chain in chains for name in chain.names)]


def _chains(story: Story) -> list[Result]:
    called = {id(e.receiver): e.receiver for e in story.events if e.name == "()"}
    return [c for c in called.values() if isinstance(c, Result) and layer_kind(c) == "Sequential"]


def _is_meant(story: Story, row: LayerRow, pattern: re.Pattern[str] = MEANT) -> bool:
    for call in row.calls:
        layer = call.receiver
        if not isinstance(layer, Result):
            return True  # one of several, of which nobody knows which
        owner = call.within[-1] if call.within else None
        around = [m.cls.node.name for m in (owner, model_around(call)) if isinstance(m, Instance)]
        if any(pattern.search(name) for name in (*around, *_names(story, layer))):
            return True
        groups = setting(layer, "groups")
        if groups is not None and constant(groups) != 1:
            return True
    return False


def _pairs(story: Story, linearity: Linearity) -> list[tuple[ProgramEvent, ProgramEvent]]:
    """Return the calls of linear layers whose output only the next linear layer takes."""
    found: dict[object, tuple[ProgramEvent, ProgramEvent]] = {}
    for first in linearity.calls:
        second = linearity.next_layer(first)
        if second is None or first.receiver is second.receiver:
            continue
        row = LayerRow((first, second))
        is_linear = all(layer_kind(layer) == "Linear" for layer in row.layers)
        is_whole = is_linear and not _is_scattered(row)
        if is_whole and _is_wide(row) and not _is_meant(story, row, PAIR):
            found.setdefault(id(first.receiver), (first, second))
    return list(found.values())


def _is_wide(row: LayerRow) -> bool:
    first, second = row.layers
    start, middle, end = (
        size(first, "in_features"), size(first, "out_features"), size(second, "out_features")
    )  # fmt: skip
    if start is None or middle is None or end is None:
        return False
    return middle >= min(start, end) and middle > 1
