"""Whether the constructor of nn.Module has run by the time that a module needs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import ClassValue, Instance, SuperValue
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import (
    callee_text,
)
from traindx.analysis.program.training.kinds import is_module_class
from traindx.analysis.program.training.layers import (
    Assigned,
    assigned,
    decorators,
    is_module,
    is_parameter,
)
from traindx.analysis.program.training.program import Program, Story

RECORDS = ("dataclasses.dataclass", "dataclass")
# functions that look at an object and leave it as it is
LOOKS = frozenset(
    {"setattr", "getattr", "hasattr", "isinstance", "print", "id", "type", "super", "vars", "repr"}
)


@dataclass(frozen=True, slots=True, eq=False)
class EarlyLayer:
    """The first layer of a model that nn.Module is not ready for, and the call that comes late."""

    first: Assigned
    late: ProgramEvent | None

    @property
    def is_alone(self) -> bool:
        """Tell whether no other class of the project stands between the class and nn.Module.

        Its constructor may take arguments, or be what leaves nn.Module out.
        """
        cls = self.first.model.cls
        return not any("__init__" in c.methods for c in cls.lineage() if c.node is not cls.node)


def unready_modules(program: Program) -> Iterator[EarlyLayer | BareCall]:
    """Yield where a module needs the constructor of nn.Module before it ran; each class once."""
    seen: set[object] = set()
    for story in program.stories:
        for first in _firsts(story.events):
            if first.model.cls.node not in seen and not is_test_file(first.event.module):
                seen.add(first.model.cls.node)
                yield from _early(story, first)
        for call in _bare_calls(story.events):
            if call.cls.node not in seen and not is_test_file(call.event.module):
                seen.add(call.cls.node)
                yield call


def _early(story: Story, first: Assigned) -> Iterator[EarlyLayer]:
    """Yield the first layer of a model where nn.Module is not initialised by then."""
    starts = [e for e in story.events if _initialises(e, first.model)]
    late = next((e for e in starts if e.order > first.event.order), None)
    # a late call to a parent of one's own: templates that a generator unrolls
    is_template = late is not None and not is_module_class(first.model.cls.external_bases)
    is_open = is_template or _is_decorated(first.model.cls)
    if not is_open and not any(e.order < first.event.order for e in starts):
        yield EarlyLayer(first, late)


def _is_decorated(cls: ClassValue) -> bool:
    """Tell whether something out of sight may initialise the objects of a class."""
    return any(d not in RECORDS for c in cls.lineage() for d in decorators(c))


def _firsts(events: Sequence[ProgramEvent]) -> Iterator[Assigned]:
    """Yield the first layer or parameter that each model is given while it is built."""
    seen: set[int] = set()
    for found in assigned(events):
        is_part = is_module(found.value) or is_parameter(found.value)
        if is_part and id(found.model) not in seen and _has_builder(found.model):
            seen.add(id(found.model))
            yield found


def _has_builder(model: Instance) -> bool:
    """Tell whether code of the project's runs in place of the constructor of nn.Module."""
    is_record = any(d in RECORDS for cls in model.cls.lineage() for d in decorators(cls))
    return is_record or any("__init__" in cls.methods for cls in model.cls.lineage())


@dataclass(frozen=True, eq=False)
class BareCall:
    """The call of an object whose class never ran the constructor of nn.Module."""

    cls: ClassValue
    event: ProgramEvent
    built: ProgramEvent


def _bare_calls(events: Sequence[ProgramEvent]) -> Iterator[BareCall]:
    """Yield the calls of modules that were built in sight and not initialised by then."""
    built = {id(e.result): e for e in events if e.is_own and isinstance(e.callee, ClassValue)}
    for event in events:
        model = event.receiver
        is_call = event.is_own and event.name == "forward" and isinstance(model, Instance)
        if not is_call or id(model) not in built or callee_text(event).endswith(".forward"):
            continue
        assert isinstance(model, Instance)
        own = [c for c in model.cls.lineage() if "__init__" in c.methods]
        is_plain = bool(own) and not any(decorators(c) for c in model.cls.lineage())
        starts = (e for e in events if e.order < event.order and _initialises(e, model))
        if is_plain and is_module(model) and not any(starts):
            yield BareCall(own[0], event, built[id(model)])


def _initialises(event: ProgramEvent, model: Instance) -> bool:
    """Tell whether an event runs the constructor of nn.Module on a model, or may do so."""
    if event.act is EventForm.STORE:
        return False
    if isinstance(event.receiver, SuperValue):
        return event.receiver.bound is model and event.name == ".__init__"
    is_given = any(a is model for a in (*event.args, *event.kwargs.values()))
    is_holder = event.name.startswith("torch.") and not event.name.endswith(".__init__")
    is_seen = event.is_own or is_holder or event.name.rsplit(".", 1)[-1] in LOOKS
    return is_given and not is_seen
