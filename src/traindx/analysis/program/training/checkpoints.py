"""Checkpoints: what is saved under which key, what is read of it, and what shares its memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Assignment, ProgramEvent
from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Instance,
    Items,
    Part,
    Result,
    Site,
    Table,
    Value,
    constant,
    depends_on,
    is_same,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.kinds import Kind, words_of
from traindx.analysis.program.training.phases import Loop, is_every_turn, loop_of, loops_of
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

STATES = (".state_dict", ".parameters", ".named_parameters", ".buffers")
# what gives other views of the same tensors
VIEWS = frozenset(
    {".detach", ".items", ".values", ".copy", ".view", ".numpy", "builtins.next", "builtins.dict",
     "builtins.list", "builtins.tuple", "collections.OrderedDict", "copy.copy", "builtins.iter",
     "builtins.zip", "builtins.sorted", "builtins.enumerate", ".detach_", ".reshape", ".flatten",
     ".ravel", ".squeeze", ".contiguous", "torch.as_tensor", "torch.from_numpy", "numpy.asarray"}
)  # fmt: skip
MOVES = frozenset({".cpu", ".to", ".float"})  # no copy of what is there already
# what saves, or collects, the state of model and optimizer at once
GATHERS = re.compile(
    r"optim\w*_state_dict$|\bget_state_dict$|checkpoint(?:\.\w+)*\.save$|\.save_(?:state|checkpoint)$"
)
COMPARED = frozenset({"operator.lt", "operator.le", "operator.gt", "operator.ge", "operator.ne"})
COUNTS = frozenset({"epoch", "epochs", "step", "steps", "iter", "iteration", "iterations", "it"})
LOOKS = frozenset({".get", ".keys", ".pop", ".__contains__"})


def state_owner(value: Value | None) -> Value | None:
    """Return whose state a value is: `x.state_dict()`, also of a wrapped `x.module`."""
    if isinstance(value, Result) and value.maker == ".state_dict":
        return value.receiver
    return None


@dataclass(frozen=True, eq=False)
class Saved:
    """Something that is written to a file, to be used or to go on from."""

    story: Story
    deed: Deed

    @cached_property
    def states(self) -> dict[object, Value]:
        """Whose states it holds, by key; a state that is saved alone has the key None."""
        content = self.deed.subject
        alone = state_owner(content)
        if alone is not None:
            return {None: alone}
        fields = content.fields if isinstance(content, Table) else {}
        found = ((k, state_owner(v)) for k, v in fields.items())
        return {k: owner for k, owner in found if owner is not None}

    @property
    def kinds(self) -> set[Kind]:
        """What the things are whose states it holds."""
        return {self.story.kind_of(owner).kind for owner in self.states.values()}

    @property
    def is_whole(self) -> bool:
        """Whether all that it holds is in sight."""
        content = self.deed.subject
        return isinstance(content, Table) and content.is_whole

    def has_groups_only(self, optimizer: Value) -> bool:
        """Tell whether of an optimizer it holds the groups with their options, and no moments."""
        parts = [v for v in _leaves(self.deed.subject) if depends_on(v, optimizer)]
        own = [v for v in parts if self.story.kind_of(state_owner(v)).kind is not Kind.SCHEDULER]
        return bool(own) and all(isinstance(v, Part) and v.key == "param_groups" for v in own)

    def holds(self, value: Value) -> bool:
        """Tell whether a value, or something made from it, is in it."""
        content = self.deed.subject
        return content is not None and depends_on(content, value)


def _leaves(content: Value | None, depth: int = 6) -> Iterator[Value]:
    """Yield what dictionaries and lists in each other hold at last."""
    if isinstance(content, (Table, Items)) and depth:
        for held in content.fields.values():
            yield from _leaves(held, depth - 1)
    elif content is not None:
        yield content


def saves(story: Story) -> list[Saved]:
    """Return what a story writes to files."""
    return [Saved(story, d) for d in story.does(Do.SAVE)]


@dataclass(frozen=True, eq=False)
class LoadedCheckpoint:
    """A checkpoint that was read from a file."""

    story: Story
    deed: Deed
    value: Value

    @cached_property
    def restored(self) -> list[Deed]:
        """What gets its state from it."""
        found = self.story.does(Do.LOAD_STATE)
        return [d for d in found if any(depends_on(a, self.value) for a in d.event.args)]

    @cached_property
    def keys(self) -> set[object]:
        """The keys that are read of it."""
        own = {k[1] for k in self.value.fields if isinstance(k, tuple) and k[0] == "part"}
        asked = (e for e in self.story.index.on(self.value) if e.name in LOOKS)
        return own | {constant(e.args[0]) for e in asked if e.args}

    @property
    def is_open(self) -> bool:
        """Whether more of it may be used than these keys say."""
        if self.story.escapes(self.value) is not Answer.NO:
            return True
        for event in self.story.events:
            is_own = event.receiver is self.value and event.name not in LOOKS
            is_given = any(
                isinstance(a, Result) and a.maker == "operator.getitem" and a.args[0] is self.value
                for a in event.args
            )
            if is_own or is_given:
                return True
            hands_on = any(_is_entry(a, self.value) for a in event.args)
            if is_written_in_vain(self.story, event):
                continue
            if hands_on and not event.is_own and not self.story.is_harmless(event):
                return True
        return False

    @cached_property
    def _names(self) -> set[str]:
        """The names that were ever bound to its epoch or step."""
        bound = self.story.recall(_counts_bound)
        return {n for n, counts in bound if any(depends_on(v, self.value) for v in counts)}

    @cached_property
    def is_resumed(self) -> bool:
        """Whether training goes on from the epoch or step that it holds."""
        for loop in loops_of(self.story):
            over = loop.over
            if over is None or not loop.does(Do.STEP):
                continue
            if _starts_at(over, self.value) or self._names & _start_names(over):
                return True
        is_compared = any(
            any(_is_counter(a, self.value) for a in e.args)
            for e in self.story.index.named(*COMPARED)
            if e.turns
        )
        return is_compared or any(self._goes_on_in(save) for save in saves(self.story))

    def _goes_on_in(self, save: Saved) -> bool:
        """Tell whether the epoch or step of a later checkpoint counts on from that of this one."""
        content = save.deed.subject
        held = content.fields.items() if isinstance(content, Table) else ()
        return save.deed.event.order > self.deed.event.order and any(
            isinstance(key, str)
            and bool(words_of(key) & COUNTS)
            and any(isinstance(o, Part) and o.of is self.value for o in origins(v, 60))
            for key, v in held
        )


def is_written_in_vain(story: Story, event: ProgramEvent) -> bool:
    """Tell whether an event writes into a state as it was taken, which nobody loads.

    `optimizer.state_dict()` is a new dictionary at every call.
    """
    owner = event.receiver
    while isinstance(owner, Part):
        owner = owner.of
    is_written = event.act is Form.STORE or event.name in (".update", ".setdefault")
    if not is_written or owner is None or state_owner(owner) is None:
        return False
    return not any(a is owner for d in story.does(Do.LOAD_STATE) for a in d.event.args)


def _start_names(over: Value) -> set[str]:
    """The names at which a loop begins."""
    is_range = isinstance(over, Result) and over.maker == "builtins.range" and len(over.args) > 1
    return set(over.args[0].names) if isinstance(over, Result) and is_range else set()


def _starts_at(over: Value, checkpoint: Value) -> bool:
    is_range = isinstance(over, Result) and over.maker in ("builtins.range", "itertools.count")
    return is_range and any(depends_on(a, checkpoint) for a in over.inputs)


def _is_entry(value: Value, checkpoint: Value) -> bool:
    return any(isinstance(o, Part) and o.of is checkpoint for o in options_of(value))


def _is_counter(value: Value, checkpoint: Value) -> bool:
    """Tell whether a number comes from the epoch or step of a checkpoint."""
    return any(depends_on(found, checkpoint) for found in _counts_behind(value))


def _counts_behind(value: Value) -> Iterator[Value]:
    """Yield the entries for an epoch or step that a number comes from."""
    for found in origins(value, 60):
        key = found.key if isinstance(found, Part) else None
        if isinstance(key, str) and words_of(key) & COUNTS:
            yield found


def _counts_bound(story: Story) -> list[tuple[str, list[Value]]]:
    """The names that hold an epoch or step out of something, each with these entries."""
    bound = ((a.name, list(_counts_behind(a.value))) for a in story.execution.assignments)
    return [(name, counts) for name, counts in bound if counts]


def loads(story: Story) -> list[LoadedCheckpoint]:
    """Return the checkpoints that a story reads."""
    return story.recall(_loads)


def _loads(story: Story) -> list[LoadedCheckpoint]:
    found = ((d, d.event.result) for d in story.does(Do.LOAD))
    return [LoadedCheckpoint(story, d, value) for d, value in found if value is not None]


def written_files(program: Program, story: Story, read: Value) -> list[Deed]:
    """Return what writes the file that is read, by its path; empty where nothing in sight does."""
    if not isinstance(read, Result) or not any(d.event.result is read for d in story.does(Do.LOAD)):
        return []
    written = {d.event.node: (s, d) for s in program.stories for d in s.does(Do.SAVE)}
    return [
        d for s, d in written.values()
        if is_same_file(d.event, read) or _is_same_default(s, d.event, story, read)
    ]  # fmt: skip


def _is_same_default(home: Story, save: ProgramEvent, story: Story, read: Result) -> bool:
    """Tell whether the path of a file is another's where nobody gives one at the command line."""
    given = read.args[0] if read.args else None
    paths = (constants_of(home, save.argument("f", 1)), constants_of(story, given))
    known = [{p for p in some if isinstance(p, str)} for some in paths]
    return bool(known[0] & known[1])


def is_same_file(save: ProgramEvent, read: Result) -> bool:
    """Tell whether a file that is read is the one that was written, by its path."""
    path = save.argument("f", 1)
    return path is not None and bool(read.args) and any(
        is_same(one, other) for one in options_of(path) for other in options_of(read.args[0])
    )  # fmt: skip


def shared_with(value: Value, *, on_cpu: bool = False) -> Iterator[Value]:
    """Yield the models whose own tensors a value holds: not copies of them.

    With `on_cpu` nothing leaves the CPU: `p.cpu()` is `p`.
    """
    for held in _uncopied(value, VIEWS | MOVES if on_cpu else VIEWS):
        if isinstance(held, Result) and held.maker in STATES and held.receiver is not None:
            yield held.receiver


def _stays_on_cpu(story: Story) -> bool:
    """Tell whether nothing in a program speaks of another device."""
    return not any(word in m.text for m in story.program.project.modules
                   for word in ("cuda", "device", "mps", "ccelerat", "ightning"))  # fmt: skip


def _uncopied(value: Value, views: frozenset[str] = VIEWS, depth: int = 8) -> Iterator[Value]:
    """Yield a value and what it holds, or is a view of, as long as nothing is copied."""
    yield value
    below: tuple[Value, ...] = ()
    if isinstance(value, Result) and value.maker in views:
        below = value.inputs[:1]
    elif isinstance(value, (Table, Items, Choice)):
        below = value.inputs
    elif isinstance(value, Part) and (value.key == "data" or isinstance(value.key, int)):
        below = (value.of,)
    for held in below if depth else ():
        yield from _uncopied(held, views, depth - 1)


@dataclass(frozen=True, eq=False)
class Kept:
    """The tensors of a model that are kept without a copy, and that training goes on changing."""

    value: Value
    model: Value
    name: str
    site: Site
    trains_on: Deed


def kept_by_reference(story: Story) -> list[Kept]:
    """Return what is kept of a model under a condition, in a loop that trains it further.

    Only what is used behind that loop, and was not written to a file within it.
    """
    found: list[Kept] = []
    for kept in _candidates(story) if story.does(Do.STEP, Do.BACKWARD) else ():
        models = dict.fromkeys(_models(story, kept))
        loop = _training_loop(story, kept) if models else None
        if loop is None:
            continue
        last = loop.events[-1].order
        copies = (e for e in loop.does(Do.SAVE) if e.event.order >= kept.order)
        if any(depends_on(a, kept.value) for d in copies for a in d.event.args):
            continue
        for model in models:
            deed = _trains_on(story, model, kept)
            is_used = _is_used_behind(story, kept.value, model, last)
            if deed is not None and (is_used or _is_read_behind(kept, loop)):
                found.append(Kept(kept.value, model, kept.name, kept.site, deed))
    return found


def _candidates(story: Story) -> list[Assignment]:
    """What names and attributes are given under a condition, in a loop, and keep until the end."""
    names = list(story.execution.assignments)
    for event in story.events:
        if event.act is Form.STORE and event.args and not _is_written_down(event):
            made = (event.order, event.site, event.name, event.args[0], event.turns, event.guards)
            names.append(Assignment(*made))
    last = _last_in_turn(names)
    kept = [a for a in names if a.turns and a.guards and _training_loop(story, a) is not None]
    lasting = (a for a in kept if not any(_overwrites(b, a) for b in last[a.name, a.turns]))
    of_models = (a for a in lasting if next(iter(_models(story, a)), None) is not None)
    return [*(a for a in of_models if not _is_element(a)), *_collected(story)]


def _last_in_turn(given: list[Assignment]) -> dict[object, list[Assignment]]:
    """What each name is given last in a turn, and the last before it that was another value.

    Whatever is overwritten in the turn is overwritten by one of the two.
    """
    found: dict[object, list[Assignment]] = {}
    for new in sorted(given, key=lambda assignment: assignment.order):
        before = found.get((new.name, new.turns), [])
        found[new.name, new.turns] = [*(b for b in before if b.value is not new.value), new][-2:]
    return found


def _is_written_down(event: ProgramEvent) -> bool:
    """Tell whether a store is one of a comprehension: each turn has a key, and a value, of its own.

    What it keeps is what the name that gets the whole of it keeps.
    """
    site = event.turns[-1].loop.site if event.turns else None
    return site is not None and isinstance(site.module.parents.get(site.node), ast.comprehension)


def _collected(story: Story) -> list[Assignment]:
    """What a list gets of models in each turn of a loop: all of it is one state, the last."""
    found = []
    for event in story.events:
        owner, row = event.receiver, next(iter(event.args), None)
        if event.name != ".append" or not event.turns or not isinstance(owner, Items):
            continue
        held = () if row is None else _uncopied(row)
        if row is not None and any(state_owner(v) is not None for v in held):
            made = (event.order, event.site, owner.called("the list"), row)
            found.append(Assignment(*made, event.turns, event.guards))
    return found


def _is_collected(kept: Assignment) -> bool:
    func = getattr(kept.site.node, "func", None)
    return isinstance(func, ast.Attribute) and func.attr == "append"


def _is_element(kept: Assignment) -> bool:
    """Tell whether a name is the variable of a loop."""
    over = kept.turns[-1].loop.over
    return over is not None and depends_on(kept.value, over)


def _overwrites(later: Assignment, kept: Assignment) -> bool:
    """Tell whether a name gets another value later in a turn."""
    return later.order > kept.order and later.value is not kept.value


def _training_loop(story: Story, kept: Assignment) -> Loop | None:
    """The innermost loop around that steps an optimizer, and has a condition of its own inside."""
    for turn in reversed(kept.turns):
        step = story.recall(_first_steps).get(turn.loop.site.node)
        if step is None:
            continue
        common = {(g.site.node, g.holds) for g in step.event.guards}
        own = [g for g in kept.guards if (g.site.node, g.holds) not in common]
        return loop_of(story, turn.loop) if own or _is_collected(kept) else None
    return None


def _first_steps(story: Story) -> dict[object, Deed]:
    """What each loop statement does first to change weights."""
    found: dict[object, Deed] = {}
    for deed in story.does(Do.STEP, Do.BACKWARD):
        for loop in deed.event.loops:
            found.setdefault(loop.site.node, deed)
    return found


def _models(story: Story, kept: Assignment) -> Iterator[Value]:
    if any("state_dict_type" in getattr(c, "maker", "") for c in _contexts(story, kept.value)):
        return  # shards are gathered into new tensors
    yield from shared_with(kept.value)
    if story.recall(_stays_on_cpu):
        near = shared_with(kept.value, on_cpu=True)
        yield from (model for model in near if isinstance(model, (Instance, Result)))
    if story.kind_of(kept.value).kind is Kind.MODEL and _is_of_best(story, kept):
        yield kept.value


def _is_of_best(story: Story, kept: Assignment) -> bool:
    """Tell whether something is kept of the best score: by its name, or as the score itself is."""
    if "best" in kept.name.lower():
        return True
    tests = [g.test for g in kept.guards[-1:] if g.test is not None]
    compared = [v for test in tests for v in origins(test, 6) if v.names]
    beside = story.recall(_by_guards).get(kept.guards, ()) if compared else ()
    return any(a.value is v and a.name != kept.name for a in beside for v in compared)


def _by_guards(story: Story) -> dict[object, list[Assignment]]:
    found: dict[object, list[Assignment]] = {}
    for given in story.execution.assignments:
        found.setdefault(given.guards, []).append(given)
    return found


def _contexts(story: Story, value: Value) -> tuple[Value, ...]:
    giver = story.giver_of(value)
    return () if giver is None else giver.contexts


def _trains_on(story: Story, model: Value, kept: Assignment) -> Deed | None:
    """The pass of a model that comes after it was kept, unless the loop is left then."""
    tests = {id(g.test): g.holds for g in kept.guards if g.test is not None}
    for deed in story.does(Do.FORWARD):
        event = deed.event
        if event.order <= kept.order or deed.subject is not model or not event.loops:
            continue
        if any(tests.get(id(g.test), g.holds) is not g.holds for g in event.guards):
            continue
        learns = (d for d in story.does(Do.BACKWARD) if d.event.order > event.order)
        if any(event.loops[0].site.node in [x.site.node for x in d.event.loops] for d in learns):
            return deed
    return None


def _is_used_behind(story: Story, value: Value, model: Value, last: int) -> bool:
    """Tell whether something is done with what was kept once the loop is over."""
    execution = story.execution
    later = [a for e in story.events if e.order > last for a in (*e.args, *e.kwargs.values())]
    later += [a.value for a in execution.assignments if a.order > last]
    later += [execution.returned] if execution.returned is not None else []
    if value is model:  # one of several, by the condition
        return any(isinstance(v, Choice) and any(o is model for o in v.options) for v in later)
    return any(any(held is value for held in _uncopied(v)) for v in later)


def _is_read_behind(kept: Assignment, loop: Loop) -> bool:
    """Tell whether a name that only the loop gives is read behind it, in the same function.

    A model that has two names is the same behind the loop by either.
    """
    node, module = loop.run.site.node, kept.site.module
    if "best" not in kept.name.lower() or module is not loop.run.site.module:
        return False
    end = getattr(node, "end_lineno", 0)
    home = module.function_of(node)
    return any(
        isinstance(n, ast.Name) and n.id == kept.name and isinstance(n.ctx, ast.Load)
        and n.lineno > end and module.function_of(n) is home
        for n in ast.walk(home or module.tree)
    )  # fmt: skip


def made_after(story: Story, value: Value, event: ProgramEvent) -> bool:
    """Tell whether a value is made later than an event."""
    return any(e.order > event.order for e in story.index.giving(value))


def states_taken(program: Program) -> set[Kind]:
    """Return of what kinds of things a program ever takes the state, to save it or otherwise.

    A framework that saves all of it by itself is one of which nothing is known.
    """
    return program.recall(_states_taken)


def _states_taken(program: Program) -> set[Kind]:
    found: set[Kind] = set()
    for story in program.stories:
        for event in story.events:
            if event.name == ".state_dict":
                found.add(story.kind_of(event.receiver).kind)
            elif GATHERS.search(event.name):
                found.add(Kind.UNKNOWN)
    return found


def saves_in_every_step(story: Story) -> Iterator[tuple[ProgramEvent, int]]:
    """Yield the calls that save in every step, and how many times a step they do."""
    for step in story.does(Do.STEP):
        depth = len(step.event.turns)
        if not depth or step.event.guards:
            continue
        for save in story.does(Do.SAVE):
            is_inside = save.event.turns[:depth] == step.event.turns
            if is_inside and is_every_turn(save.event, step.event):
                count = prod(_rounds(turn.loop.over) for turn in save.event.turns[depth:])
                if count:
                    yield save.event, count


def _rounds(over: object) -> int:
    """How many turns a loop takes; 0 where that is not known."""
    is_range = isinstance(over, Result) and over.maker == "builtins.range" and len(over.args) == 1
    end = constant(over.args[0]) if isinstance(over, Result) and is_range else None
    return end if isinstance(end, int) and end > 0 else 0
