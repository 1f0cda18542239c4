"""What a run that goes on from a checkpoint does not get back, and which keys it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Answer,
    Known,
    Result,
    Table,
    Value,
    constant,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.checkpoints import (
    LoadedCheckpoint,
    Saved,
    loads,
    saves,
    states_taken,
    written_files,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.loaders import argument_of
from traindx.analysis.program.training.ownership import trains
from traindx.analysis.program.training.phases import training_loops

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story


def has_momentum(optimizer: Value) -> bool:
    """Tell whether an optimizer keeps a state: all but SGD without momentum do."""
    if not isinstance(optimizer, Result) or not optimizer.maker.endswith(".SGD"):
        return True
    given = optimizer.kwargs.get("momentum")
    return given is not None and constant(given) != 0


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Something that training changes, and that the checkpoint it goes on from does not hold."""

    value: Value
    restored: Deed  # what the checkpoint does give back
    save: Saved | None


def left_out(program: Program, story: Story) -> Iterator[LeftOut]:
    """Yield the optimizers that step, and the models that they train, of which no state is taken.

    Only where training goes on from what was saved.
    """
    if Kind.UNKNOWN in states_taken(program):
        return
    for loaded in loads(story):
        kinds = {story.kind_of(d.subject).kind for d in loaded.restored}
        goes_on = Kind.OPTIMIZER in kinds or (Kind.MODEL in kinds and loaded.is_resumed)
        if not goes_on or Kind.UNKNOWN in kinds or loaded.is_open:
            continue
        save = next((s for s in saves(story) if s.states), None)
        for value in (*_stepped(story), *_trained(story, loaded)):
            is_kept = _is_taken(program, value) or any(_is_in(s, value) for s in saves(story))
            if not is_kept and story.escapes(value) is Answer.NO:
                yield LeftOut(value, loaded.restored[0], save)


def _stepped(story: Story) -> list[Value]:
    found = {id(d.subject): d.subject for d in story.does(Do.STEP) if d.subject is not None}
    return [o for o in found.values() if story.is_kind(o, Kind.OPTIMIZER) and has_momentum(o)]


def _trained(story: Story, loaded: LoadedCheckpoint) -> list[Value]:
    """The models that an optimizer trains whose own state is restored."""
    optimizers = [d.subject for d in loaded.restored if story.is_kind(d.subject, Kind.OPTIMIZER)]
    models = {id(d.subject): d.subject for d in story.does(Do.FORWARD) if not d.event.within}
    return [m for m in models.values() if m is not None and m.site is not None
            and any(o is not None and trains(o, m) for o in optimizers)]  # fmt: skip


def _is_taken(program: Program, value: Value) -> bool:
    """Tell whether the state of a value is taken, or of something that holds it, in any program.

    Of a value that is one of several, the state of one is enough.
    """
    nodes = [(o, None if o.site is None else o.site.node) for o in options_of(value)]
    return any(
        _holds(story, owner, option, node)
        for option, node in nodes
        for story in program.stories
        for event in story.events
        if event.name in (".state_dict", ".load_state_dict") and event.receiver is not None
        for owner in options_of(event.receiver)
    )


def _is_in(save: Saved, value: Value) -> bool:
    """Tell whether a value is written to a file otherwise: whole, or by its parameters."""
    pending, seen = [v for v in (save.deed.subject,) if v is not None], set()
    while pending:
        found = pending.pop()
        if found is value:
            return True
        is_state = isinstance(found, Result) and found.maker == ".state_dict"
        if not is_state and id(found) not in seen:
            seen.add(id(found))
            pending.extend(found.inputs)
    return False


def _holds(story: Story, owner: Value, value: Value, node: object) -> bool:
    """Tell whether a state is that of a value, or of a module that has it as a part."""
    if owner is value or (owner.site is not None and owner.site.node is node):
        return True
    is_model = story.kind_of(owner).kind is Kind.MODEL
    return is_model and story.has_inside(owner, value)


@dataclass(frozen=True, eq=False)
class AskedInVain:
    """A state that is only restored if the checkpoint has a key, which nothing ever writes."""

    story: Story
    restored: Deed
    key: str
    written: frozenset[str]
    save: Deed

    def is_of(self, kind: Kind) -> bool:
        """Tell whether it is the state of something of a kind."""
        return self.story.kind_of(self.restored.subject).kind is kind


def asked_in_vain(program: Program) -> Iterator[AskedInVain]:
    """Yield the states that are restored from keys under which nothing was saved."""
    for story in program.stories:
        for loaded in loads(story):
            found = _writers(program, loaded)
            tables = [d.subject for d in found if isinstance(d.subject, Table)]
            if not tables or len(tables) < len(found) or not all(t.is_whole for t in tables):
                continue
            keys = frozenset(k for t in tables for k in t.fields if isinstance(k, str))
            for deed, key in _optional(loaded):
                others = [
                    d for d in story.does(Do.LOAD_STATE) if d.event.node is not deed.event.node
                ]
                is_only = not any(d.subject is deed.subject for d in others)
                if key not in keys and is_only and all(k in keys for t in tables for k in t.fields):
                    yield AskedInVain(story, deed, key, keys, found[0])


def _writers(program: Program, loaded: LoadedCheckpoint) -> list[Deed]:
    """Return what writes the checkpoint that is read.

    Where the path is given from outside, a run that goes on from an epoch goes on from its own.
    """
    found = written_files(program, loaded.story, loaded.value)
    path = next(iter(loaded.deed.event.args), None)
    if found or isinstance(path, Known) or not loaded.is_resumed:
        return found
    written = {d.event.node: d for s in program.stories for d in s.does(Do.SAVE)}
    return [d for d in written.values() if isinstance(d.subject, Table)]


def _optional(loaded: LoadedCheckpoint) -> Iterator[tuple[Deed, str]]:
    """Yield what is restored under a key that need not be there: `get`, `if key in checkpoint`."""
    for deed in loaded.story.does(Do.LOAD_STATE):
        tests = [g.true_test for g in deed.event.guards if g.true_test is not None]
        for value in (v for used in (*tests, *deed.event.args) for v in origins(used, 60)):
            key = _asked(value, loaded.value)
            if key is not None:
                yield deed, key


def _asked(value: Value, checkpoint: Value) -> str | None:
    """Return the key that a checkpoint is asked for, where the program goes on without it."""
    if not isinstance(value, Result) or not value.args:
        return None
    default: Value | None = None
    key, of = value.args[0], value.receiver
    if value.maker == "operator.in" and len(value.args) == 2:
        of = value.args[1]
    elif value.maker in (".get", ".pop"):
        default = argument_of(value, "default", 1)
    else:
        return None
    is_table = isinstance(default, Table) and not default.fields
    is_empty = default is None or is_table or (isinstance(default, Known) and default.value is None)
    found = constant(key)
    return found if of is checkpoint and is_empty and isinstance(found, str) else None


def _is_weights(save: Saved) -> bool:
    return set(save.states) == {None} and save.kinds == {Kind.MODEL}


def _resumes(story: Story) -> bool:
    """Tell whether weights are loaded, and training then begins at an epoch that may not be 0."""
    loaded = [d for d in story.does(Do.LOAD_STATE) if story.kind_of(d.subject).kind is Kind.MODEL]
    for loop in training_loops(story):
        over = loop.over
        is_range = isinstance(over, Result) and over.maker == "builtins.range"
        begin = over.args[0] if is_range and isinstance(over, Result) and over.args[1:] else None
        first = next(iter(loop.events)).order
        is_open = begin is not None and not isinstance(begin, Known)
        if is_open and story.does(Do.LOAD) and any(d.event.order < first for d in loaded):
            return True
    return False


def bare_weights(story: Story) -> Saved | None:
    """Return what is saved first in a program that resumes and saves nothing but weights."""
    found = saves(story)
    if found and all(_is_weights(s) for s in found) and _resumes(story):
        return found[0]
    return None
