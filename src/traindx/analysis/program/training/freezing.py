"""Which parameters are switched off and on again: `requires_grad`, on tensors and on modules."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import merge
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.calls import is_generator
from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.frameworks import is_trainer
from traindx.analysis.program.execution.library import LISTINGS, modules_in
from traindx.analysis.program.execution.truth import truth_of
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Instance,
    Items,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    options_of,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.covered_parameters import is_given_to_all
from traindx.analysis.program.training.kinds import Kind

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

LIKE = 0.85  # letters that are doubled, swapped or left out; `retains_grad` is 0.80

NAME = "requires_grad"
PARTS = frozenset({".children", ".modules", ".named_children", ".named_modules"})
# what gives every member of what it goes over
ALL = frozenset({"builtins.next", "builtins.list", "builtins.tuple", "builtins.iter",
                 "builtins.reversed", "itertools.chain", "builtins.enumerate"})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Switch:
    """A place where gradients of parameters are switched.

    `model` is the module whose parameters they are, where that is known; `is_on` is None where the
    source does not decide it; `is_whole` says that no parameter of the model is left out.
    """

    event: ProgramEvent
    model: Value | None
    is_on: bool | None
    is_whole: bool


def switches(story: Story) -> list[Switch]:
    """Return where a story freezes and unfreezes parameters, in order."""
    return story.recall(_switches)


def _switches(story: Story) -> list[Switch]:
    return [s for e in story.events if (s := _switch(story, e)) is not None]


def _switches_by_event(story: Story) -> dict[int, Switch]:
    return {id(switch.event): switch for switch in switches(story)}


def _switch(story: Story, event: ProgramEvent) -> Switch | None:
    if event.act is Form.STORE and event.name == NAME and event.receiver is not None:
        if is_module(story, event.receiver):
            return None  # an attribute of a module switches nothing
        model, is_whole = owner_of(story, event.receiver)
        is_sure = is_whole and not event.guards
        is_on = truth_of(event.args[0])
        by_name = None if is_sure and is_on is not None else _switched_by_name(event)
        if by_name is not None:
            return Switch(event, model, by_name, is_whole=True)
        return Switch(event, model, is_on, is_sure)
    if event.name != ".requires_grad_" or event.receiver is None:
        return None
    given = event.argument(NAME, 0)
    is_on = True if given is None else truth_of(given)
    if is_module(story, event.receiver) or story.kind_of(event.receiver).kind is Kind.MODEL:
        return Switch(event, event.receiver, is_on, not event.guards)
    model, is_whole = owner_of(story, event.receiver)
    return Switch(event, model, is_on, is_whole and not event.guards)


def _switched_by_name(event: ProgramEvent) -> bool | None:
    """How a condition on names or shapes switches all parameters of a model, where it is one way.

    So one is that no name fulfils: `if not name.startswith("head")` of a model without a head.
    """
    return None if event.receiver is None else is_given_to_all(event, event.receiver, event.args[0])


def owner_of(story: Story, parameter: Value) -> tuple[Value | None, bool]:
    """Return the module that a parameter is of, and whether it stands for every one of them."""
    value: Value | None = parameter
    is_whole = False
    while value is not None:
        if isinstance(value, Result) and value.maker in LISTINGS:
            return value.receiver, is_whole
        if isinstance(value, Result) and value.maker in PARTS:
            return value.receiver, False
        if isinstance(value, Part):
            is_pair = isinstance(value.key, int)
            if not is_pair and is_module(story, value.of):
                return value.of, False
            value = value.of
        elif isinstance(value, Result) and value.inputs:
            is_whole = value.maker in ALL
            value = value.inputs[0]
            if not is_whole:
                return owner_of(story, value)[0], False
        elif isinstance(value, (Choice, Items)) and value.inputs:
            value = value.inputs[0]
        else:
            return None, False
    return None, False


def is_module(story: Story, value: Value) -> bool:
    """Tell whether a value is certainly a module of torch, not a tensor."""
    if isinstance(value, Choice):
        return all(is_module(story, o) for o in value.options)
    if isinstance(value, Result) and value.maker == "builtins.next" and value.args:
        over = value.args[0]
        return isinstance(over, Result) and over.maker in (".children", ".modules")
    if isinstance(value, Part) and value.key == 1 and isinstance(value.of, Result):
        rows = value.of.args[0] if value.of.args else None
        named = (".named_children", ".named_modules")
        return isinstance(rows, Result) and rows.maker in named
    return story.is_kind(value, Kind.MODEL)


def frozen_by(story: Story, model: Value, before: ProgramEvent) -> Switch | None:
    """Return what freezes every parameter of a model for good, before an event.

    None where nothing does, and where anything since may have given it something to train.
    """
    found: Switch | None = None
    if all(switch.is_on is not False for switch in switches(story)):
        return None
    inside = modules_in(model)
    modules = [part for part in inside if part is model or is_module(story, part)]
    made = next((e.order for e in story.index.giving(model)), -1)
    switched = story.recall(_switches_by_event)
    touched = (s.event for s in switches(story)), story.index.touching(*modules)
    for event in merge(*touched, key=lambda event: event.order):
        if event.order >= before.order:
            break
        switch = switched.get(id(event)) if event.order > made else None
        if switch is not None and _concerns(switch, inside):
            is_off = switch.is_on is False and switch.is_whole and _covers(switch, model)
            found = switch if is_off else (found if switch.is_on is False else None)
        elif found is not None and _adds_parameters(story, event, modules):
            found = None
    return found


def _concerns(switch: Switch, inside: Iterable[Value]) -> bool:
    if switch.model is None:
        return True
    model = switch.model
    while isinstance(model, Part):
        model = model.of  # a layer of a model whose inside is out of sight
    wanted = {id(part) for part in inside}
    return any(id(m) in wanted for m in modules_in(model))


def _covers(switch: Switch, model: Value) -> bool:
    outer = switch.model
    if outer is None or (isinstance(outer, Result) and outer.maker == "operator.getitem"):
        return False  # some of the layers
    return any(m is model for m in modules_in(outer))


def _adds_parameters(story: Story, event: ProgramEvent, inside: list[Value]) -> bool:
    """Tell whether an event may give a model a new layer, or change it out of sight."""
    if event.act is Form.STORE:
        return any(event.receiver is part for part in inside) and story.kind_of(
            event.args[0]
        ).kind in (Kind.MODEL, Kind.UNKNOWN)
    is_given = any(a is part for a in (*event.args, *event.kwargs.values()) for part in inside)
    if event.is_own or not is_given:
        return event.name in (".add_module", ".register_module", ".append") and any(
            event.receiver is part for part in inside
        )
    return not (story.is_harmless(event) or is_trainer(event.result))


def is_ever_frozen(story: Story, layer: Value) -> Answer:
    """Tell whether a layer, or something around it, is ever switched off."""
    if id(layer) in story.recall(_given_constants):
        return Answer.YES
    for switch in switches(story):
        if switch.is_on is True:
            continue
        if switch.model is None:
            return Answer.UNKNOWN
        if story.has_inside(switch.model, layer):
            return Answer.YES
        if not isinstance(switch.model, (Instance, Result)):
            return Answer.UNKNOWN
    return Answer.NO


def _given_constants(story: Story) -> set[int]:
    """The layers that get a parameter without gradients: `Parameter(w, requires_grad=False)`."""
    return {
        id(event.receiver)
        for event in story.events
        if event.act is Form.STORE and event.args
        for given in options_of(event.args[0])
        if isinstance(given, Result) and constant(given.kwargs.get("requires_grad")) is False
    }


def learns_between(story: Story, first: ProgramEvent, last: ProgramEvent) -> bool:
    """Tell whether a model runs or learns between two events."""
    wanted = (Do.FORWARD, Do.BACKWARD, Do.STEP)
    return any(first.order < d.event.order < last.order for d in story.does(*wanted))


def taken_back(story: Story) -> list[tuple[Switch, Switch]]:
    """Return the freezes of some parameters after which all are on again before anything ran.

    A model that is switched off and on as a whole is only being set to a known state.
    """
    found: list[tuple[Switch, Switch]] = []
    every = switches(story)
    for position, on in enumerate(every):
        if on.is_on is not True or not on.is_whole or on.model is None or _is_paused(on.event):
            continue
        if any(s.is_on is not True for s in every[position + 1 :]):
            continue
        partly = (s for s in every[:position] if s.is_on is False and not s.is_whole)
        off = next((s for s in partly if s.model is on.model), None)
        if off is not None and not _is_used_between(story, on.model, off.event, on.event):
            found.append((off, on))
    return found


def _is_paused(event: ProgramEvent) -> bool:
    """Tell whether a function that yields does it: others run between its statements."""
    return event.function is not None and is_generator(event.function)


def _is_used_between(story: Story, model: Value, first: ProgramEvent, last: ProgramEvent) -> bool:
    """Tell whether a model runs, learns or leaves our sight between two events."""
    if learns_between(story, first, last):
        return True
    given = (e for e in story.index.taking(*modules_in(model)) if not e.is_own)
    between = (e for e in given if first.order < e.order < last.order)
    return any(not story.is_harmless(event) for event in between)


def frozen_untrained(story: Story) -> list[Switch]:
    """Return the freezes of some tensors of a model by their place in the list of all.

    Of a model that was never trained, loaded or copied before, and is trained afterwards; who
    freezes layers by name, or a part of the model, may take them for trained.
    """
    every = switches(story)
    found: list[Switch] = []
    for switch in every:
        model = switch.model
        event = switch.event
        by_place = bool(event.turns) and not event.guards and not switch.is_whole
        if model is None or switch.is_on is not False or not by_place:
            continue
        inside = modules_in(model)
        others = [s for s in every if s.is_on is not False and _concerns(s, inside)]
        if others or not is_fresh(story, model, switch.event):
            continue
        if _learns_after(story, model, switch.event):
            found.append(switch)
    return found


def is_fresh(story: Story, model: Value, before: ProgramEvent) -> bool:
    """Tell whether a model was made in sight and only that."""
    if isinstance(model, Instance) and model.original is not None:
        return False
    inside = modules_in(model)
    if not all(_is_made_new(story, part) for part in inside):
        return False
    models = {id(part) for part in inside if story.kind_of(part).kind is Kind.MODEL}
    for deed in story.does(Do.LOAD_STATE, Do.BACKWARD, Do.LOAD, Do.MANUAL_UPDATE):
        if deed.event.order < before.order:
            return False
    earlier = (e for e in story.events if e.order < before.order and not e.is_own)
    return not any(_may_fill(story, event, models) for event in earlier)


def _is_made_new(story: Story, part: Value) -> bool:
    """Tell whether a module, if it is one, starts from random numbers."""
    if story.kind_of(part).kind is not Kind.MODEL:
        return not isinstance(part, (Unknown, Choice))
    if isinstance(part, Instance):
        return part.original is None
    if not isinstance(part, Result) or part.receiver is not None:
        return False
    last = part.maker.rsplit(".", 1)[-1]
    return part.maker.startswith(("torch.nn.", "transformers.")) and last[:1].isupper()


def _may_fill(story: Story, event: ProgramEvent, inside: set[int]) -> bool:
    """Tell whether an event may write weights into a model."""
    given = (*event.args, *event.kwargs.values())
    around = (v for a in given if isinstance(a, (Instance, Result)) for v in modules_in(a))
    if not story.is_harmless(event) and any(id(v) in inside for v in around):
        return True
    return event.name in (".copy_", ".from_pretrained") and event.receiver is not None


def _learns_after(story: Story, model: Value, since: ProgramEvent) -> bool:
    """Tell whether a model, or layers of it by themselves, run for a backward pass."""
    later = [d for d in story.does(Do.FORWARD) if d.event.order > since.order]
    runs = (d for d in later if d.event.gradients is not Answer.NO)
    is_run = any(d.subject is not None and story.has_inside(model, d.subject) for d in runs)
    return is_run and any(d.event.order > since.order for d in story.does(Do.BACKWARD))


def unlisted(story: Story) -> list[tuple[Switch, Value]]:
    """Return what is switched on after an optimizer listed only what was on then, with it.

    Where nothing gives the optimizer more, and no other one is made since.
    """
    found: list[tuple[Switch, Value]] = []
    made = [(e, e.result) for e in story.events
            if e.result is not None and e.result.site is e.site
            and story.is_kind(e.result, Kind.OPTIMIZER)]  # fmt: skip
    for event, optimizer in made:
        if not _picks_trainable(story, event) or story.escapes(optimizer) is not Answer.NO:
            continue
        later = [e for e in story.events if e.order > event.order]
        if any(e.name == ".add_param_group" or any(e is m for m, _ in made) for e in later):
            continue
        for switch in switches(story):
            inside = [] if switch.model is None else modules_in(switch.model)
            before = [s for s in switches(story) if s.event.order < event.order]
            is_off = any(s.is_on is False and _concerns(s, inside) for s in before)
            is_later = switch.event.order > event.order and switch.is_on is True
            if is_off and is_later and _steps_after(story, optimizer, switch.event):
                found.append((switch, optimizer))
    return found


def _steps_after(story: Story, optimizer: Value, event: ProgramEvent) -> bool:
    steps = (d.event for d in story.does(Do.STEP) if d.subject is optimizer)
    return any(step.order > event.order for step in steps)


def _picks_trainable(story: Story, made: ProgramEvent) -> bool:
    """Tell whether an optimizer is given only the parameters that are on: by a filter, an `if`."""
    given = made.argument("params", 0)
    bound = (a.site.node for a in story.execution.assignments if a.value is given)
    nodes = [made.node, *bound]
    return any(
        isinstance(n, ast.Attribute) and n.attr == NAME for node in nodes for n in ast.walk(node)
    )


def vain_switches(story: Story) -> Iterator[tuple[ProgramEvent, bool]]:
    """Yield settings that only make a new attribute, on a module or under a mistyped name."""
    for event in story.events:
        value = constant(event.args[0]) if event.act is Form.STORE else None
        if not isinstance(value, bool) or event.receiver is None:
            continue
        is_on_module = event.name == NAME and is_module(story, event.receiver)
        is_mistyped = _is_mistyped(event.name)
        if is_on_module or (is_mistyped and owner_of(story, event.receiver)[0] is not None):
            yield event, value


def _is_mistyped(name: str) -> bool:
    """Tell whether a name is meant to be `requires_grad`, with letters gone astray."""
    return name != NAME and SequenceMatcher(None, name, NAME).ratio() > LIKE
