"""A program and what it does: the questions that a rule may ask of source code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import merge
from typing import Any, TypeVar

from traindx.analysis.program.execution.entries import Execution, executions
from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.frameworks import is_trainer
from traindx.analysis.program.execution.library import modules_in
from traindx.analysis.program.execution.values import (
    Answer,
    ClassValue,
    Items,
    Part,
    Result,
    Table,
    Unknown,
    Value,
    options_of,
)
from traindx.analysis.program.project import Project, project_of
from traindx.analysis.program.shapes.structure import names_read
from traindx.analysis.program.training.acts import Deed, Do, deed_of, is_gradient
from traindx.analysis.program.training.event_index import EventIndex
from traindx.analysis.program.training.facts.dtypes import Dtypes
from traindx.analysis.program.training.facts.ranges import Ranges
from traindx.analysis.program.training.facts.tensor_devices import Places
from traindx.analysis.program.training.facts.tensor_shapes import TensorShapes
from traindx.analysis.program.training.flow import Flow
from traindx.analysis.program.training.kinds import (
    TELLING,
    UNKNOWN,
    Kind,
    Nature,
    kind_by_deeds,
    kind_by_name,
    made_kind,
)
from traindx.analysis.program.training.operations import (
    Operation,
    is_in_place,
    name_of_operation,
    operation_of,
)
from traindx.analysis.program.training.reach import is_given, is_held
from traindx.analysis.time_limit import ask_time
from traindx.model.run import Run

# libraries whose functions do nothing to the models, optimizers and loaders that they are given
HARMLESS = frozenset(
    {"torch", "numpy", "builtins", "math", "os", "sys", "time", "tqdm", "logging", "wandb", "copy",
     "random", "json", "typing", "functools", "itertools", "collections", "matplotlib", "sklearn",
     "operator", "str", "warnings", "pathlib", "re", "torchinfo", "torchsummary", "contextlib",
     "mlflow", "pandas", "scipy", "datetime", "pprint", "argparse", "dataclasses", "rich",
     "tensorboard", "tensorboardX", "yaml", "csv", "shutil", "glob", "gc", "psutil", "click",
     "torchmetrics"}
)  # fmt: skip
KNOWN_BASES = HARMLESS | {"abc", "enum", "dict", "list", "object", "?"}
Answered = TypeVar("Answered")
HANDED_ON = frozenset({"torch.optim.swa_utils"})


class Story:
    """One execution with what it does to train, in order."""

    def __init__(self, program: Program, execution: Execution) -> None:
        self.program = program
        self.execution = execution
        self.events: tuple[ProgramEvent, ...] = execution.events
        self._answers: dict[object, Any] = {}
        self._natures: dict[Value, Nature] = {}
        self._insides: dict[int, frozenset[int]] = {}

    @property
    def bindings(self) -> tuple[dict[str, Value], ...]:
        """What names and attributes held where each call, constructor and file ended."""
        return self.execution.bindings

    @cached_property
    def deeds(self) -> tuple[Deed, ...]:
        """Everything that is done to train, in order."""
        found = (deed_of(event, self.kind_of) for event in self.events)
        return tuple(deed for deed in found if deed is not None)

    def recall(self, question: Callable[[Story], Answered]) -> Answered:
        """Return the answer to a question about the story, worked out once."""
        ask_time()
        if question not in self._answers:
            self._answers[question] = question(self)
        answer: Answered = self._answers[question]
        return answer

    def does(self, *kinds: Do) -> list[Deed]:
        """Return what is done of these kinds, in order."""
        ask_time()
        if len(kinds) == 1:
            return list(self._deeds_by_kind.get(kinds[0], ()))
        found = (self._deeds_by_kind.get(kind, ()) for kind in dict.fromkeys(kinds))
        return list(merge(*found, key=lambda deed: deed.event.order))

    @cached_property
    def _deeds_by_kind(self) -> dict[Do, list[Deed]]:
        found: dict[Do, list[Deed]] = {}
        for deed in self.deeds:
            found.setdefault(deed.do, []).append(deed)
        return found

    @cached_property
    def index(self) -> EventIndex:
        """Its events by name, receiver, argument and result."""
        return EventIndex(self.events)

    @cached_property
    def drawn(self) -> EventIndex:
        """What its loaders do for an example, in the same way."""
        return EventIndex(tuple(e for x in self.execution.examples for e in x.events))

    @cached_property
    def _asked(self) -> dict[int, set[str]]:
        """The methods that are called on each value, of those that tell what it is."""
        found: dict[int, set[str]] = {}
        for event in self.events:
            is_telling = event.name.startswith(".") and event.name[1:] in TELLING
            if is_telling and event.receiver is not None:
                for value in options_of(event.receiver):
                    found.setdefault(id(value), set()).add(event.name[1:])
        return found

    def kind_of(self, value: Value | None) -> Nature:
        """Return what a value is: by what made it, by what is done with it, by its names."""
        if value is None:
            return UNKNOWN
        if value not in self._natures:
            self._natures[value] = self._nature(value)
        return self._natures[value]

    def _nature(self, value: Value) -> Nature:
        known = made_kind(value)
        if known is not None:
            return known
        deeds = {d for o in options_of(value) for d in self._asked.get(id(o), set())}
        return kind_by_deeds(deeds) or kind_by_name(value)

    def has_inside(self, model: Value, part: Value | None) -> bool:
        """Tell whether a value is a model, or is inside of it."""
        if id(model) not in self._insides:
            self._insides[id(model)] = frozenset(id(inner) for inner in modules_in(model))
        return id(part) in self._insides[id(model)]

    def is_kind(self, value: Value | None, kind: Kind) -> bool:
        """Tell whether a value is certainly of a kind."""
        nature = self.kind_of(value)
        return nature.kind is kind and nature.is_certain

    def made(self, kind: Kind) -> list[Value]:
        """Return the values of a kind that the program makes, in order."""
        return list(self._made.get(kind, {}).values())

    @cached_property
    def _made(self) -> dict[Kind, dict[int, Value]]:
        found: dict[Kind, dict[int, Value]] = {}
        for event in self.events:
            value = event.result
            if value is None or value.site is not event.site or event.act is Form.STORE:
                continue
            nature = made_kind(value)
            if nature is not None:
                found.setdefault(nature.kind, {}).setdefault(id(value), value)
        return found

    @cached_property
    def _operations(self) -> dict[str, list[ProgramEvent]]:
        """The calls that do each operation on tensors, in order."""
        found: dict[str, list[ProgramEvent]] = {}
        for event in self.events:
            value = event.result
            if event.act is not Form.CALL or not isinstance(value, Result):
                continue
            name = name_of_operation(value)
            if name is not None and (value.site is event.site or event.name == "()"):
                found.setdefault(name, []).append(event)
        return found

    @property
    def operation_names(self) -> Collection[str]:
        """The operations on tensors that it does."""
        return self._operations.keys()

    def operations(self, *names: str) -> Iterator[Computed]:
        """Yield what the named operations compute, in whatever form they are written."""
        ask_time()
        found = (self._operations.get(name, ()) for name in dict.fromkeys(names))
        for event in merge(*found, key=lambda event: event.order):
            operation = operation_of(event.result)
            if operation is not None:
                yield Computed(self, event, operation)

    def giver_of(self, value: Value) -> ProgramEvent | None:
        """Return the first event that gives a value."""
        return self._givers.get(value)

    @cached_property
    def _givers(self) -> dict[Value, ProgramEvent]:
        found: dict[Value, ProgramEvent] = {}
        for event in self.events:
            if event.result is not None:
                found.setdefault(event.result, event)
        return found

    def made_one(self, maker: str) -> Value | None:
        """Return the value that a function or class of that dotted name makes first."""
        return next((e.result for e in self.index.named(maker)), None)

    @cached_property
    def values(self) -> list[Value]:
        """Every value that an event has, and everything that these were computed from."""
        found: dict[int, Value] = {}
        pending: list[Value] = []
        for event in self.events:
            given = (event.receiver, *event.args, *event.kwargs.values(), event.result)
            pending.extend(v for v in given if v is not None)
        pending.extend(loop.over for event in self.events for loop in event.loops if loop.over)
        while pending:
            value = pending.pop()
            if id(value) not in found:
                found[id(value)] = value
                pending.extend(value.inputs)
        return list(found.values())

    @cached_property
    def _users(self) -> dict[Value, list[Value]]:
        found: dict[Value, list[Value]] = {}
        for value in self.values:
            for below in value.inputs:
                if below in found:
                    found[below].append(value)
                else:
                    found[below] = [value]
        return found

    def made_from(self, value: Value) -> list[Value]:
        """Return the values that were computed from one directly."""
        return self._users.get(value, [])

    @staticmethod
    def is_given(event: ProgramEvent, value: Value) -> bool:
        """Tell whether a value is among the arguments of an event, or inside of one."""
        return is_given(event, value)

    def uses(self, value: Value) -> list[ProgramEvent]:
        """Return every event that has a value as its receiver or among its arguments."""
        return list(self.index.using(value))

    @cached_property
    def shapes(self) -> TensorShapes:
        """The shapes of its tensors."""
        return TensorShapes(self)

    @cached_property
    def dtypes(self) -> Dtypes:
        """The element types of its tensors and arrays."""
        return Dtypes(self)

    @cached_property
    def ranges(self) -> Ranges:
        """The whole numbers that its labels and indices reach."""
        return Ranges(self)

    @cached_property
    def places(self) -> Places:
        """The devices of its tensors."""
        return Places(self)

    @cached_property
    def flow(self) -> Flow:
        """What is computed from each value."""
        return Flow(self.events)

    def escapes(self, value: Value, before: ProgramEvent | None = None) -> Answer:
        """Tell whether something out of sight gets hold of a value and may do anything with it.

        With `before`, whether it has by the time of that event.
        """
        ask_time()
        if self.execution.gave_up:
            return Answer.UNKNOWN
        returned = None if before is not None else self.execution.returned
        if returned is not None and is_held(returned, value):
            return Answer.YES
        return Answer.of(bool(next(self.handed_on(value, before=before), None)))

    def handed_on(
        self, value: Value, after: ProgramEvent | None = None, before: ProgramEvent | None = None
    ) -> Iterator[ProgramEvent]:
        """Yield where a value is handed to something out of sight, between two events."""
        for event in self.index.given(value):
            if before is not None and event.order >= before.order:
                return
            is_followed = event.is_own and not _is_made_out_of_sight(event)
            if is_followed or (after is not None and event.order <= after.order):
                continue
            if event.act is Form.STORE:
                if isinstance(event.receiver, (Unknown, Part)):
                    yield event
            elif not self.is_harmless(event):
                yield event

    def is_harmless(self, event: ProgramEvent) -> bool:
        """Tell whether a call out of sight leaves what it is given alone."""
        if event.receiver is None:
            return event.name.split(".", 1)[0] in HARMLESS
        nature = self.kind_of(event.receiver)
        if event.name == ".fit" and is_trainer(event.receiver):
            return True  # what Lightning does is done in its place
        if isinstance(event.receiver, (Items, Table)) or is_in_place(event.name):
            return True  # an operation in place changes nothing but the tensor it is called on
        return nature.kind is not Kind.UNKNOWN or event.name in (".join", ".format", ".append")

    @cached_property
    def _handed(self) -> set[int]:
        """The values that are given to calls that nothing comes back from in a use of them."""
        return {
            id(v)
            for e in self.events
            if not e.is_own and (e.act is Form.STORE or not self.is_harmless(e))
            for v in (*e.args, *e.kwargs.values())
        }

    def is_handed_on(self, value: Value) -> bool:
        """Tell whether a value itself is stored, or given to a call out of sight."""
        return id(value) in self._handed

    def reads_gradients(self, events: Iterable[ProgramEvent]) -> bool:
        """Tell whether gradients are used for something else than a step, a clip or clearing."""
        return any(id(event) in self._gradient_readers for event in events)

    @cached_property
    def _gradient_readers(self) -> set[int]:
        deeds = {id(d.event) for d in self.deeds}
        found = set()
        for event in self.events:
            given = (event.receiver, *event.args, *event.kwargs.values())
            if id(event) not in deeds and any(v is not None and is_gradient(v) for v in given):
                found.add(id(event))
        return found

    @cached_property
    def by_loop(self) -> dict[object, list[ProgramEvent]]:
        """What happens inside of each loop statement, in order."""
        found: dict[object, list[ProgramEvent]] = {}
        for event in self.events:
            for node in {loop.site.node for loop in event.loops}:
                found.setdefault(node, []).append(event)
        return found

    @cached_property
    def deeds_by_loop(self) -> dict[object, list[Deed]]:
        """What is done to train inside of each loop statement, in order."""
        found: dict[object, list[Deed]] = {}
        for deed in self.deeds:
            for node in {loop.site.node for loop in deed.event.loops}:
                found.setdefault(node, []).append(deed)
        return found

    @cached_property
    def loops(self) -> list[LoopRun]:
        """Every loop that runs, in the order in which they begin; each statement once."""
        found: dict[object, LoopRun] = {}
        for event in self.events:
            for loop in event.loops:
                found.setdefault(loop.site.node, loop)
        return list(found.values())


@dataclass(frozen=True, eq=False)
class Computed:
    """An operation on tensors where it happens."""

    story: Story
    event: ProgramEvent
    operation: Operation

    @property
    def label(self) -> str:
        """How the program calls the operation: `nn.CrossEntropyLoss`, `F.cross_entropy`."""
        receiver = self.event.receiver
        if self.event.name == "()" and isinstance(receiver, Result):
            return receiver.maker.rsplit(".", 1)[-1]
        return self.event.name.rsplit(".", 1)[-1]


@dataclass(frozen=True, eq=False)
class Program:
    """Every program that the source files of a run hold."""

    project: Project

    @cached_property
    def stories(self) -> tuple[Story, ...]:
        """What each of them does, scripts before functions that nothing calls."""
        return tuple(Story(self, e) for e in executions(self.project))

    @cached_property
    def _answers(self) -> dict[object, Any]:
        return {}

    def recall(self, question: Callable[[Program], Answered]) -> Answered:
        """Return the answer to a question about the program, worked out once."""
        if question not in self._answers:
            self._answers[question] = question(self)
        answer: Answered = self._answers[question]
        return answer

    def may_read(self, attribute: str) -> bool:
        """Tell whether any code reads an attribute of that name, or has a text that may name it."""
        return attribute in self._attributes_read or self.project.may_mention(attribute)

    @cached_property
    def _attributes_read(self) -> frozenset[str]:
        led_to = (m for m in self.project.background if self.stories and m.is_parsed)
        files = (*self.project.modules, *led_to)
        return frozenset(name for m in files for name in names_read(m.tree))

    def defines_method(self, name: str) -> bool:
        """Tell whether a class of the project, no module, has a method of that name."""
        for module in self.project.modules:
            for cls in module.classes.values():
                own = {getattr(node, "name", "") for node in cls.body}
                if name in own and not self.project.is_module(module, cls):
                    return True
        return self.project.may_mention(name)

    @cached_property
    def _defined(self) -> frozenset[str]:
        found = (n for m in self.project.modules for n in m.nodes(ast.FunctionDef))
        return frozenset(node.name for node in found)

    def defines(self, name: str) -> bool:
        """Tell whether the project has a function or method of that name."""
        return name in self._defined

    def calls(self, *names: str) -> Iterator[ProgramEvent]:
        """Yield the calls of functions and classes by dotted name, each place once."""
        yield from self.once(e for s in self.stories for e in s.index.named(*names))

    def results(self, *operations: str) -> Iterator[Computed]:
        """Yield what the named operations compute, in whatever form they are written."""
        doing = {at for name in operations for at in self._stories_by_operation.get(name, ())}
        for at in sorted(doing):
            yield from self.stories[at].operations(*operations)

    @cached_property
    def _stories_by_operation(self) -> dict[str, list[int]]:
        """In which stories each operation is done, by their places."""
        found: dict[str, list[int]] = {}
        for at, story in enumerate(self.stories):
            for name in story.operation_names:
                found.setdefault(name, []).append(at)
        return found

    @staticmethod
    def once(events: Iterable[ProgramEvent]) -> Iterator[ProgramEvent]:
        """Yield the first event of each place in the source."""
        seen: set[object] = set()
        for event in events:
            if event.node not in seen:
                seen.add(event.node)
                yield event


def _is_made_out_of_sight(event: ProgramEvent) -> bool:
    """Tell whether a class leaves its constructor to a base of a library that may keep anything."""
    made = event.callee
    if not isinstance(made, ClassValue) or any("__init__" in c.methods for c in made.lineage()):
        return False
    return any(base.split(".", 1)[0] not in KNOWN_BASES for base in made.foreign)


def program_of(run: Run) -> Program:
    """Return the program of a run; followed once however many rules ask."""
    return _program(project_of(run))


def each_place(
    run: Run, question: Callable[[Story], Iterable[Answered]], at: Callable[[Answered], object]
) -> Iterator[Answered]:
    """Yield what is found in the stories of a run, once for each place in the source.

    What has no place, for it is out of sight, is left out.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in question(story):
            place = at(found)
            if place is not None and place not in seen:
                seen.add(place)
                yield found


@lru_cache(maxsize=8)
def _program(project: Project) -> Program:
    return Program(project)
