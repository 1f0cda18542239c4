"""Which parameters an optimizer holds, and which of those that learn no optimizer holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.layer_parts import PARAMETER
from traindx.analysis.program.execution.library import HELD, modules_in
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Instance,
    Items,
    Method,
    Part,
    Result,
    Table,
    Unknown,
    Value,
    constant,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.freezing import (
    Switch,
    frozen_by,
    frozen_untrained,
    is_ever_frozen,
    is_fresh,
    switches,
)
from traindx.analysis.program.training.gradients import history
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.layers import has_parameters
from traindx.analysis.program.training.reach import is_given, is_held

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MANY = 4000
LISTS = (".parameters", ".named_parameters")
WHOLE = frozenset({"builtins.list", "builtins.tuple", "builtins.iter", "itertools.chain"})


def parameters_given(optimizer: Value) -> Value | None:
    """Return what an optimizer was made with."""
    if not isinstance(optimizer, Result):
        return None
    if optimizer.args:
        return optimizer.args[0]
    return optimizer.kwargs.get("params")


def holders(value: Value | None, depth: int = 8) -> Iterator[tuple[Value, bool]]:
    """Yield the models whose parameters a value holds, and whether it holds them all."""
    if value is None or depth == 0:
        return
    if isinstance(value, Result) and value.maker in LISTS and value.receiver is not None:
        yield value.receiver, True
    elif isinstance(value, (Items, Choice)):
        for part in value.inputs:
            yield from holders(part, depth - 1)
    elif isinstance(value, Table):
        yield from holders(value.fields.get("params"), depth - 1)
    elif isinstance(value, Result):
        is_whole = value.maker in WHOLE
        for part in value.inputs:
            for model, whole in holders(part, depth - 1):
                yield model, whole and is_whole
    elif isinstance(value, Part):
        for model, _ in holders(value.of, depth - 1):
            yield model, False


def trains(optimizer: Value, model: Value) -> bool:
    """Tell whether an optimizer was made with parameters of a model or of what holds it."""
    found = holders(parameters_given(optimizer))
    return any(part is model for held, _ in found for part in modules_in(held))


def owns(optimizer: Value, model: Value) -> Answer:
    """Tell whether an optimizer holds the parameters of a model."""
    given = parameters_given(optimizer)
    if given is None:
        return Answer.UNKNOWN
    found = list(holders(given))
    for held, whole in found:
        parts = modules_in(held)
        if any(p is model for p in parts):
            return Answer.YES if whole else Answer.UNKNOWN
    if not found or any(isinstance(held, (Unknown, Part, Choice)) for held, _ in found):
        return Answer.UNKNOWN
    inner = modules_in(model)
    if any(any(h is part for part in inner) for h, _ in found):
        return Answer.UNKNOWN  # some parts of it
    return Answer.NO


@dataclass(frozen=True, eq=False)
class Holding:
    """What optimizers may hold: modules, layers and parameters, as they were when listed.

    `is_open` says that something out of sight may be among them.
    """

    layers: tuple[Value, ...]
    is_open: bool

    def has(self, layer: Value) -> bool:
        return id(layer) in self._held

    @cached_property
    def _held(self) -> frozenset[int]:
        return frozenset(id(layer) for layer in self.layers)


def optimizers_of(story: Story) -> list[Value]:
    """Return the optimizers that a story makes, steps or clears."""
    return list(story.recall(_optimizers_of))


def _optimizers_of(story: Story) -> list[Value]:
    found = story.made(Kind.OPTIMIZER)
    for deed in story.does(Do.STEP, Do.ZERO_GRAD):
        for value in options_of(deed.subject) if deed.subject is not None else ():
            is_one = story.kind_of(value).kind in (Kind.OPTIMIZER, Kind.UNKNOWN)
            if is_one and not any(value is f for f in found):
                found.append(value)
    return found


def holding_of(story: Story, *optimizers: Value) -> Holding:
    """Return what these optimizers may hold, from the beginning or since."""
    known, key = story.recall(_known_holdings), tuple(map(id, optimizers))
    if key not in known:
        known[key] = _holding_of(story, optimizers)
    return known[key]


def _known_holdings(story: Story) -> dict[tuple[int, ...], Holding]:
    return {}


def _holding_of(story: Story, optimizers: Sequence[Value]) -> Holding:
    layers: list[Value] = []
    is_open = False
    for optimizer in optimizers:
        given = [parameters_given(optimizer), *_added(story, optimizer)]
        is_open = is_open or _is_rewritten(story, optimizer)
        for value in given:
            found, may_be_more = ([], True) if value is None else _listed(value)
            is_open = is_open or may_be_more or not found
            layers.extend(found)
    return Holding(tuple(layers), is_open)


def _added(story: Story, optimizer: Value) -> list[Value]:
    """What is given to an optimizer later, as another group of parameters."""
    events = (e for e in story.index.on(optimizer) if e.name == ".add_param_group")
    return [a for e in events for a in (*e.args, *e.kwargs.values())]


def _is_rewritten(story: Story, optimizer: Value) -> bool:
    """Tell whether the parameters in an optimizer's groups are exchanged by hand."""
    groups = story.recall(_rewritten_groups)
    return any(v is optimizer for group in groups for v in origins(group, 200))


def _rewritten_groups(story: Story) -> list[Value]:
    found: list[Value] = []
    for event in story.index.stores:
        is_item = event.name == "[]" and len(event.args) > 1
        key = constant(event.args[1]) if is_item else event.name
        if key == "params" and event.receiver is not None:
            found.append(event.receiver)
    return found


def _listed(value: Value) -> tuple[list[Value], bool]:
    """The modules and parameters that a value lists, and whether it may list others too."""
    found: list[Value] = []
    is_open = False
    pending, seen = [value], set[int]()
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        is_open = is_open or _may_list_more(item)
        if PARAMETER in item.fields:
            pending.append(item.fields[PARAMETER])
        elif isinstance(item, Result) and item.maker in LISTS:
            held = item.fields.get(HELD)
            if held is None or isinstance(item.receiver, (Unknown, Part, Choice, Method)):
                return [], True
            found.extend(held.fields.values())
        elif has_parameters(item):
            found.append(item)
        elif isinstance(item, (Unknown, Instance)) or getattr(item, "maker", "") == "()":
            return [], True
        elif isinstance(item, Table):
            given = item.fields.get("params")
            pending.extend(item.inputs if given is None else (given,))
        else:
            pending.extend(item.inputs)
    return found, is_open


def _may_list_more(value: Value) -> bool:
    """Tell whether some parameters by name stand for others that are not in sight."""
    is_open = isinstance(value, (Items, Table)) and not value.is_whole
    is_one_of = isinstance(value, Choice)
    return (is_open or is_one_of) and any(PARAMETER in v.fields for v in value.inputs)


def _all_frozen(story: Story) -> Iterator[tuple[Switch, Deed | None]]:
    """What freezes all that an optimizer holds, and the step that has nothing to update."""
    for step in story.does(Do.STEP):
        models = _trained(story, step)
        frozen = [frozen_by(story, m, step.event) for m in models]
        switches = [s for s in frozen if s is not None]
        if switches and len(switches) == len(models):
            yield switches[0], step


def _trained(story: Story, step: Deed) -> list[Value]:
    """The models whose parameters a step updates."""
    given = None if step.subject is None else parameters_given(step.subject)
    if given is not None or not step.event.by_framework:
        return [model for model, _ in holders(given)]
    before = (d for d in story.does(Do.FORWARD) if d.event.order < step.event.order)
    recorded = [d for d in before if d.event.gradients is not Answer.NO and not d.event.within]
    return [d.subject for d in recorded if d.subject is not None][-1:]


def _never_on_again(story: Story) -> Iterator[tuple[Switch, Deed]]:
    """What freezes one of several models of an optimizer in every turn and never lets it go.

    It starts from random numbers, and the optimizer was given it by itself.
    """
    steps: dict[Value, list[Deed]] = {}
    for step in story.does(Do.STEP):
        if step.subject is not None:
            steps.setdefault(step.subject, []).append(step)
    for optimizer, own in steps.items():
        models = list(dict.fromkeys(m for m, _ in holders(parameters_given(optimizer))))
        frozen = {m: [frozen_by(story, m, d.event) for d in own] for m in models}
        for model, found in frozen.items():
            first = found[0]
            is_in_turn = first is not None and bool(first.event.turns)
            if first is None or not is_in_turn or len(models) < 2 or None in found:
                continue
            if any(None in others for m, others in frozen.items() if m is not model) and (
                is_fresh(story, model, first.event)
            ):
                yield replace(first, model=model), own[0]


def frozen_whole(story: Story) -> Iterator[tuple[Switch, Deed | None]]:
    """Yield what freezes all that an optimizer holds, or random weights that it holds.

    With the step that has nothing to update.
    """
    yield from _all_frozen(story)
    yield from _never_on_again(story)
    holding = holding_of(story, *optimizers_of(story))
    for switch in frozen_untrained(story):
        if switch.model is not None and (holding.is_open or holding.has(switch.model)):
            yield switch, None


def learning_layers(backward: Deed) -> list[Value]:
    """Return the layers and parameters, made in sight, that a backward pass gives gradients."""
    if backward.subject is None:
        return []
    found: list[Value] = []
    for value in history(backward.subject):
        if has_parameters(value) and not any(value is f for f in found):
            found.append(value)
    return found


def unowned_layers(story: Story) -> list[tuple[Deed, Value]]:
    """Return the layers that learn and that no optimizer holds, with the backward pass of each.

    A layer that is frozen, loaded, kept in evaluation mode or changed by hand is left out; so is
    everything where an optimizer is out of sight.
    """
    optimizers = optimizers_of(story)
    holding = holding_of(story, *optimizers)
    by_hand = story.does(Do.GRAD, Do.MANUAL_UPDATE)
    is_seen = optimizers and not holding.is_open and not by_hand
    if not is_seen or any(story.escapes(o) is not Answer.NO for o in optimizers):
        return []
    found: list[tuple[Deed, Value]] = []
    for backward in story.does(Do.BACKWARD):
        for layer in learning_layers(backward):
            if holding.has(layer) or any(layer is f for _, f in found):
                continue
            if not is_left_alone(story, layer, backward.event):
                found.append((backward, layer))
    return [] if _is_selection(optimizers, len(found), len(holding.layers)) else found


def left_out(story: Story, backward: Deed) -> Value | None:
    """Return an optimizer that nothing steps, of layers that learn and that no other one holds."""
    steps = [d.subject for d in story.does(Do.STEP)]
    if story.does(Do.GRAD, Do.MANUAL_UPDATE) or not all(_is_made(s) for s in steps):
        return None
    learnt = learning_layers(backward)
    for optimizer in story.made(Kind.OPTIMIZER):
        if any(s is optimizer for s in steps) or story.escapes(optimizer) is not Answer.NO:
            continue
        others = holding_of(story, *(s for s in steps if s is not None))
        own = holding_of(story, optimizer)
        is_open = own.is_open or others.is_open
        if not is_open and any(own.has(x) and not others.has(x) for x in learnt):
            return optimizer
    return None


def _is_made(optimizer: Value | None) -> bool:
    return optimizer is not None and parameters_given(optimizer) is not None


def _is_selection(optimizers: list[Value], missing: int, held: int) -> bool:
    """Tell whether parameters were picked by name to train only these, not to group them all."""
    given = [v for o in optimizers if (v := parameters_given(o)) is not None]
    is_by_name = any(PARAMETER in v.fields for value in given for v in origins(value, MANY))
    groups = [v for value in given for v in value.inputs if isinstance(v, Table)]
    if any(_is_empty(group.fields.get("params")) for group in groups):
        return False  # a name that no parameter has: it is mistyped
    return is_by_name and (len(groups) < 2 or missing * 2 > held)


def _is_empty(given: Value | None) -> bool:
    return isinstance(given, Items) and given.is_whole and not given.members


def is_left_alone(story: Story, layer: Value, before: ProgramEvent) -> bool:
    """Tell whether a layer may be meant to stay as it is, or be changed some other way."""
    if is_ever_frozen(story, layer) is not Answer.NO:
        return True
    for deed in story.does(Do.LOAD_STATE, Do.EVAL_MODE):
        if deed.subject is None or deed.event.order > before.order:
            continue
        is_meant = deed.do is Do.LOAD_STATE or not _trains_again(story, layer)
        if is_meant and story.has_inside(deed.subject, layer):
            return True
    return any(
        e.name.endswith("_") and not e.name.startswith("torch.nn.init")
        for e in story.index.on(layer)
    )


def _trains_again(story: Story, layer: Value) -> bool:
    """Tell whether a layer is put into training mode."""
    modes = (d.subject for d in story.does(Do.TRAIN_MODE) if d.subject is not None)
    return any(story.has_inside(model, layer) for model in modes)


def layers_added(story: Story) -> list[tuple[Value, ProgramEvent]]:
    """Return the layers that a model gets after an optimizer listed it, and that none gets since.

    Of models whose forward pass is out of sight; in sight, it says itself which layers learn.
    """
    optimizers = optimizers_of(story)
    holding = holding_of(story, *optimizers)
    if holding.is_open or any(story.escapes(o) is not Answer.NO for o in optimizers):
        return []
    found: list[tuple[Value, ProgramEvent]] = []
    for event in story.events:
        if event.act is not Form.STORE or not isinstance(event.receiver, Result):
            continue
        layer = event.args[0]
        is_new = any(has_parameters(p) and not holding.has(p) for p in modules_in(layer))
        owner = next((o for o in optimizers if holding_of(story, o).has(event.receiver)), None)
        is_made = isinstance(layer, (Result, Instance)) and story.is_kind(layer, Kind.MODEL)
        steps = (d for d in story.does(Do.STEP) if d.subject is owner)
        if owner is None or not is_made or not is_new:
            continue
        if any(d.event.order > event.order for d in steps):
            found.append((owner, event))
    return found


@dataclass(frozen=True, eq=False)
class HeldPart:
    """A part of a model that is all that an optimizer holds; `tensors` where they are counted."""

    optimizer: Value
    model: Value
    text: str
    tensors: int | None = None


def parts_held(story: Story) -> list[HeldPart]:
    """Return the optimizers that hold only a part of a model that learns.

    Only where nothing in the story is frozen, and one optimizer is made.
    """
    made = story.made(Kind.OPTIMIZER)
    if len(made) != 1 or switches(story) or story.escapes(made[0]) is not Answer.NO:
        return []
    given = parameters_given(made[0])
    forwards = [d for d in story.does(Do.FORWARD) if not d.event.within]
    is_off = any(d.event.gradients is not Answer.YES for d in forwards)
    models = [d.subject for d in forwards if d.subject is not None]
    count = _sliced(given)
    found: list[HeldPart] = []
    held = list(holders(given))
    for model in dict.fromkeys(models if len(held) == 1 else ()):
        holder = held[0][0]
        if isinstance(holder, Part) and holder.of is model and not is_off:
            found.append(HeldPart(made[0], model, f"{holder.key}"))
        elif count is not None and story.has_inside(holder, model):
            found.append(HeldPart(made[0], model, f"{count} tensor{'s' * (count > 1)}", count))
    return found


def _sliced(given: Value | None) -> int | None:
    """How many tensors a slice takes of the whole list, counted from either end."""
    if not isinstance(given, Result) or given.maker != "operator.getitem":
        return None
    bounds = given.args[1]
    if not isinstance(bounds, Result) or bounds.maker != "builtins.slice":
        return None
    first, last, step = (getattr(b, "value", "?") for b in bounds.args)
    if step is None and isinstance(first, int) and first < 0 and last is None:
        return -first
    if step is None and first is None and isinstance(last, int) and last > 0:
        return last
    return None


def collected_in_vain(story: Story) -> list[tuple[ProgramEvent, Items]]:
    """Return the lists that parameters are collected in and that nothing ever reads.

    Only where other lists that are filled alike are given to an optimizer.
    """
    lists: dict[Items, ProgramEvent] = {}
    for event in story.events:
        owner = event.receiver
        if event.name not in (".append", ".extend") or not isinstance(owner, Items):
            continue
        given = [a for a in event.args if not _is_name(a)]
        made = (v for a in given for v in origins(a, 20) if isinstance(v, Result))
        if any(v.maker in LISTS for v in made):
            lists.setdefault(owner, event)
    given = [v for o in story.made(Kind.OPTIMIZER) if (v := parameters_given(o)) is not None]
    held = {v for value in given for v in origins(value)}
    found = [
        (event, owner)
        for owner, event in lists.items()
        if owner not in held and not any(isinstance(v, Table) for v in owner.members)
    ]
    is_used = any(owner in held for owner in lists)
    return [(e, owner) for e, owner in found if is_used and not _is_read(story, owner)]


def _is_name(value: Value) -> bool:
    """Tell whether a value is the name of a parameter: the first of a pair of a listing."""
    pair = value.of if isinstance(value, Part) and value.key == 0 else None
    listing = pair.args[0] if isinstance(pair, Result) and pair.args else None
    return isinstance(listing, Result) and listing.maker.startswith(".named_")


def _is_read(story: Story, owner: Items) -> bool:
    """Tell whether anything is done with a list but to fill it."""
    if story.escapes(owner) is not Answer.NO:
        return True
    for event in story.events:
        if event.receiver is owner and event.name not in (".append", ".extend"):
            return True
        is_taken = not event.is_own and is_given(event, owner)  # or it is followed
        if is_taken or any(loop.over is owner for loop in event.loops):
            return True
        if event.is_own and event.result is not None and is_held(event.result, owner):
            return True
    return False


@dataclass(frozen=True, eq=False)
class UnownedModel:
    """A model, or a layer of it, that learns in no optimizer; `made` is one without it."""

    text: str
    layer: Value
    backward: Deed
    made: Value | None


def unowned_models(story: Story) -> Iterator[UnownedModel]:
    """Yield each model of which layers learn in vain, once."""
    reported: list[Value] = []
    missing = unowned_layers(story)
    for backward, layer in missing:
        owner = _model_of(story, layer)
        if layer.site is None or any(owner is r for r in reported):
            continue
        reported.append(owner)
        what = written_name(layer)
        if owner is not layer:
            is_whole = _is_wholly_unowned(story, backward, owner, missing)
            what = written_name(owner) if is_whole else f"{what} of {written_name(owner)}"
        made = next((o for o in optimizers_of(story) if o.site is not None), None)
        yield UnownedModel(what, layer, backward, made)


def _is_wholly_unowned(
    story: Story, backward: Deed, owner: Value, missing: list[tuple[Deed, Value]]
) -> bool:
    """Tell whether no layer of a model that learns is in an optimizer."""
    learning = [x for x in learning_layers(backward) if _model_of(story, x) is owner]
    return all(any(x is m for _, m in missing) for x in learning)


def _model_of(story: Story, layer: Value) -> Value:
    """The outermost model that a layer is part of, by what runs."""
    for deed in story.does(Do.FORWARD):
        model = None if deed.event.within else deed.subject
        if model is not None and story.has_inside(model, layer):
            return model
    return layer


def written_name(value: Value) -> str:
    """Return a name for a value, or for what made it, as it stands in the source."""
    names = value.names - {"self"}
    if names:
        return f"`{min(sorted(names), key=len)}`"
    if isinstance(value, Instance):
        return f"`{value.cls.node.name}`"
    return f"`{value.maker.rsplit('.', 1)[-1]}`" if isinstance(value, Result) else "A model"
