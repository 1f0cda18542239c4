"""The keys of a state: which a model has, which a checkpoint holds, and how a program renames them.

Only the first part of a key is looked at (`encoder` of `encoder.0.weight`), and all attributes of a
model may be one: what has none of them in common with a model certainly does not fit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
    constant,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.checkpoints import state_owner, written_files
from traindx.analysis.program.training.layers import (
    attributes,
    has_weights,
    is_layer,
    is_parameter,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

LOADS = ".load_state_dict"
EDITS = frozenset({".pop", ".popitem", ".update", ".clear", ".setdefault"})
REST = ".…"  # what follows the known part of a key
LEVELS = 2  # of a key that are looked at
REGISTERS = frozenset({".add_module", ".register_module", ".register_parameter",
                       ".register_buffer"})  # fmt: skip
TEXT = frozenset({"removeprefix", "removesuffix", "replace", "lstrip", "strip", "partition",
                  "split", "lower"})  # fmt: skip
# what holds a model under a name of its own; the model is followed as if it stood alone
WRAPS = {
    "torch.nn.DataParallel": "module",
    "torch.nn.parallel.DataParallel": "module",
    "torch.nn.parallel.DistributedDataParallel": "module",
    "torch.compile": "_orig_mod",
}
SAME_ENTRIES = frozenset({"builtins.dict", "collections.OrderedDict", ".copy", "copy.copy",
                          "copy.deepcopy"})  # fmt: skip


@dataclass(frozen=True, eq=False)
class ForeignState:
    """A state that is loaded into a model that has none of its keys, or not all that it must."""

    event: ProgramEvent  # where it is loaded
    owner: Value  # whose state it is
    held: frozenset[str]
    wanted: frozenset[str]
    is_merged: bool = False  # into the model's own state, which then fits

    @property
    def is_silent(self) -> bool:
        """Whether nothing is said about it: `strict=False`."""
        return self.is_merged or constant(self.event.argument("strict", 1)) is False


def foreign_states(program: Program) -> Iterator[ForeignState]:
    """Yield the states that are loaded where no key of theirs is known, or one that is demanded."""
    for story in program.stories:
        yield from _copied_by_name(program, story)
        for deed in story.does(Do.LOAD_STATE):
            given = deed.event.argument("state_dict", 0)
            known = None if deed.subject is None else known_keys(story, deed.subject)
            outer = wrapper_of(story, deed.event)
            wanted = frozenset(key.split(".", 1)[0] for key in known or ())
            wanted = frozenset({outer}) if outer and wanted else wanted
            if given is None or not wanted:
                continue
            for entries in _merged(story, deed, given):
                for owner, held in _loaded(program, story, entries):
                    if owner is not deed.subject and not held & wanted:
                        yield ForeignState(deed.event, owner, held, wanted, is_merged=True)
            for owner, held in _loaded(program, story, given):
                extra = held
                if held & wanted:
                    is_strict = _demands_all(story, deed.event, given) and "…" not in wanted
                    extra = _weights_of(owner) & held - wanted if is_strict else frozenset()
                if extra:
                    yield ForeignState(deed.event, owner, extra, wanted)


def _copied_by_name(program: Program, story: Story) -> Iterator[ForeignState]:
    """Yield where entries are copied one by one into a model's own state, where it has them."""
    for event in story.events:
        own, key, given = _entry_written(event)
        model, source = state_owner(own), None if given is None else _entry(given)
        if model is None or key is None or source is None:
            continue
        known = known_keys(story, model)
        wanted = frozenset(k.split(".", 1)[0] for k in known or ())
        is_same_name = _text(key, source, "a.b") == "a.b"
        for owner, held in _loaded(program, story, source) if wanted and is_same_name else ():
            if owner is not model and not held & wanted and "…" not in wanted:
                yield ForeignState(event, owner, held, wanted, is_merged=True)


def _entry_written(event: ProgramEvent) -> tuple[Value | None, Value | None, Value | None]:
    """Return the state, the key and the value of `own[k] = v` or `own[k].copy_(v)`."""
    if event.act is EventForm.STORE and len(event.args) == 2:
        return event.receiver, event.args[1], event.args[0]
    entry = event.receiver if event.name == ".copy_" and event.args else None
    if isinstance(entry, Result) and entry.maker == "operator.getitem":
        return entry.args[0], entry.args[1], event.args[0]
    return None, None, None


def _merged(story: Story, load: Deed, state: Value) -> Iterator[Value]:
    """Yield the dictionaries whose entries a model's own state takes in before it is loaded."""
    if isinstance(state, Result) and state.maker in ("operator.or", "operator.ior"):
        parts: list[Value] = list(state.args)
    elif isinstance(state, Table):
        parts = [state]
    else:
        edits = [e for e in story.events if e.receiver is state and e.order < load.event.order]
        parts = [state, *(e.args[0] for e in edits if e.name == ".update" and e.args)]
    is_own = any(state_owner(part) is load.subject for part in parts)
    yield from (p for p in parts if is_own and state_owner(p) is None)


def _demands_all(story: Story, event: ProgramEvent, state: Value) -> bool:
    """Tell whether a load fails by a single key too many, in a state that is as it was saved."""
    is_strict = event.argument("strict", 1) is None and not event.is_tried
    return is_strict and not _renaming(state)[1] and not _is_edited(story, state)


def _is_edited(story: Story, state: Value) -> bool:
    """Tell whether entries of a state may be taken out or put in by hand."""
    for event in story.events:
        if event.receiver is state and (event.name in EDITS or event.act is EventForm.STORE):
            return True
        is_given = any(v is state for v in event.args) and not event.is_own
        if is_given and not event.name.startswith("builtins.") and event.name != LOADS:
            return True
    return False


def _weights_of(model: Value) -> frozenset[str]:
    """Return the attributes of a model that certainly have weights, and keys of the state so."""
    if not isinstance(model, Instance):
        return frozenset()
    held = attributes(model).items()
    return frozenset(
        name for name, part in held
        if (is_layer(part) or is_parameter(part)) and has_weights(part) is Answer.YES
    )  # fmt: skip


def known_keys(story: Story, model: Value, depth: int = LEVELS) -> set[str] | None:
    """Return what the keys of a model's state may begin with; None where that is out of sight."""
    if isinstance(model, Instance):
        if any(base != "torch.nn.Module" for base in model.cls.foreign):
            return None
        named = {**attributes(model), **_registered(story, model)}
        parts = [(n, v) for n, v in named.items() if n.isidentifier() or n == "…"]
        return {k for name, part in parts for k in _below(story, name, part, depth)}
    if not isinstance(model, Result) or model.receiver is not None:
        return None
    if model.maker.endswith("swa_utils.AveragedModel") and model.args:
        return {"n_averaged", *_below(story, "module", model.args[0], depth)}
    is_chain = model.maker == "torch.nn.Sequential" and bool(model.args)
    if not is_chain or any(_is_open(a) for a in model.args):
        return None
    layers = enumerate(model.args)
    return {k for number, layer in layers for k in _below(story, str(number), layer, depth)}


def _below(story: Story, name: str, part: Value, depth: int) -> set[str]:
    inner = known_keys(story, part, depth - 1) if depth else None
    return {f"{name}.{key}" for key in inner} if inner else {name + REST}


def _registered(story: Story, model: Value) -> dict[str, Value]:
    found = (e for e in story.index.on(model) if e.name in REGISTERS and e.args)
    return {str(constant(e.args[0]) or "…"): e.args[-1] for e in found}


def _is_open(value: Value) -> bool:
    is_spread = isinstance(value, Result) and value.maker == "operator.spread"
    return is_spread or isinstance(value, (Table, Items)) or _makes_table(value)


def _makes_table(value: Value) -> bool:
    return isinstance(value, Result) and value.maker in SAME_ENTRIES


def _loaded(program: Program, story: Story, given: Value) -> Iterator[tuple[Value, frozenset[str]]]:
    """Yield whose state is loaded, with what its keys begin with by then."""
    state, keys = _renaming(given)
    whole = None if keys else _written(program, story, state)
    if whole is not None and isinstance(whole[1], Table) and whole[1].is_whole:
        names = frozenset(k for k in whole[1].fields if isinstance(k, str))
        if len(names) == len(whole[1].fields):
            yield from ((v, names) for v in whole[1].fields.values() if state_owner(v) is not None)
        return
    for home, owner, outer in _owners(program, story, state):
        held = known_keys(home, owner) or set()
        held = {f"{outer}.{key}" for key in held} if outer else held
        texts = [_text(k, state, text) for text in held for k in keys] if keys else list(held)
        first = frozenset(t.split(".", 1)[0] for t in texts if isinstance(t, str))
        are_known = all(isinstance(t, str) for t in texts) and not any("…" in k for k in first)
        if first and "" not in first and are_known:
            yield owner, first


def _renaming(given: Value) -> tuple[Value, list[Value]]:
    """Return the state that a dictionary is made from, and its keys as what they are made of."""
    while isinstance(given, Result) and given.maker in SAME_ENTRIES and given.inputs:
        given = given.inputs[0]
    if not isinstance(given, Table) or given.is_whole or not given.open_keys:
        return given, []
    if len(given.open_keys) != len(given.fields):
        return given, []  # some are written down
    for value in given.fields.values():
        view = _entry(value)
        if view is not None:
            return view, given.open_keys
    return given, []


def _entry(value: Value) -> Value | None:
    """Return the dictionary that a value is an entry of, in a loop over its items."""
    row = value.of if isinstance(value, Part) else value
    view = row.args[0] if isinstance(row, Result) and row.maker == "builtins.next" else None
    is_view = isinstance(view, Result) and view.maker in (".items", ".keys", ".values")
    return view.receiver if is_view else view  # type: ignore[union-attr]


def _owners(program: Program, story: Story, state: Value) -> Iterator[tuple[Story, Value, str]]:
    """Yield whose state a value is, itself or what a file holds that the program has written.

    With what the owner was wrapped in then.
    """
    own = state_owner(state)
    if own is not None:
        yield story, own, _wrapped_at(story, state)
        return
    key = state.key if isinstance(state, Part) else None
    found = _written(program, story, state.of if isinstance(state, Part) else state)
    if found is None:
        return
    home, subject = found
    content = subject.fields.get(key) if isinstance(subject, Table) else subject
    owner = state_owner(content) if (key is None) is not isinstance(subject, Table) else None
    if owner is not None and content is not None:
        yield home, owner, _wrapped_at(home, content)


def _wrapped_at(story: Story, state: Value) -> str:
    taken = story.giver_of(state)
    return "" if taken is None else wrapper_of(story, taken)


def wrapper_of(story: Story, call: ProgramEvent) -> str:
    """Return the name under which the wrapper that a method is called on holds the model.

    Empty where it is called on the model itself, or where that is not sure.
    """
    written, found = _receiver_text(call), ""
    for event in story.index.giving(call.receiver):
        if event.order >= call.order:
            break
        if event.name in WRAPS:
            is_same_name = event.module is call.module and _target_text(event) == written
            is_sure = is_same_name and all(g in call.guards for g in event.guards)
            found = WRAPS[event.name] if is_sure else ""
    return found


def _receiver_text(call: ProgramEvent) -> str:
    func = getattr(call.node, "func", None)
    return call.module.source(func.value) if isinstance(func, ast.Attribute) else ""


def _target_text(event: ProgramEvent) -> str:
    statement = event.statement
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    is_whole = isinstance(statement, ast.Assign) and statement.value is event.node
    return event.module.source(targets[0]) if len(targets) == 1 and is_whole else ""


def _written(program: Program, story: Story, read: Value) -> tuple[Story, Value | None] | None:
    """Return what a file holds that is read, where the program writes it in one place."""
    found = written_files(program, story, read)
    if len(found) != 1:
        return None  # none, or one of several
    home = next(s for s in program.stories if found[0] in s.does(Do.SAVE))
    return home, found[0].subject


def _text(value: Value, state: Value, key: str, depth: int = 12) -> object:
    """Return what a key becomes by the operations on texts that lead to a value."""
    if isinstance(value, Known):
        return value.value
    if depth == 0:
        return None
    is_first = not isinstance(value, Part) or value.key == 0
    if is_first and _entry(value) is state:
        return key
    if isinstance(value, Part) and isinstance(value.key, int):
        several = _text(value.of, state, key, depth - 1)
        return several[value.key] if isinstance(several, (list, tuple)) else None
    return _computed(value, state, key, depth) if isinstance(value, Result) else None


def _computed(made: Result, state: Value, key: str, depth: int) -> object:
    inputs = [_text(v, state, key, depth - 1) for v in made.inputs]
    if any(v is None for v in inputs) and made.maker != "operator.getitem":
        return None
    name = made.maker.rsplit(".", 1)[-1]
    try:
        if made.maker == "operator.getitem":
            return inputs[0][_bounds(made.args[1])]  # type: ignore[index]
        if made.maker in ("operator.add", "str.format"):
            return "".join(map(str, inputs))
        if made.maker.startswith(".") and name in TEXT and isinstance(inputs[0], str):
            return getattr(inputs[0], name)(*inputs[1:])
    except (TypeError, IndexError, ValueError):
        return None
    return None


def _bounds(value: Value) -> slice | int:
    if isinstance(value, Known) and isinstance(value.value, int):
        return value.value
    if not isinstance(value, Result) or value.maker != "builtins.slice":
        raise ValueError
    if not all(isinstance(a, Known) for a in value.args):
        raise ValueError
    return slice(*(constant(a) for a in value.args))
