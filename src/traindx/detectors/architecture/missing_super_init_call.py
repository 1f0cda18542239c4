"""A module whose `__init__` does not initialise nn.Module before it is needed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import ClassValue, Instance, Site, SuperValue
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import (
    callee_text,
    cite,
    finding,
    insert_first,
    move_first,
)
from traindx.analysis.program.training.kinds import is_module_class
from traindx.analysis.program.training.layers import (
    Assigned,
    assigned,
    decorators,
    is_module,
    is_parameter,
)
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

BUILDERS = ("__init__", "__post_init__")
RECORDS = ("dataclasses.dataclass", "dataclass")
# functions that look at an object and leave it as it is
LOOKS = frozenset(
    {"setattr", "getattr", "hasattr", "isinstance", "print", "id", "type", "super", "vars", "repr"}
)


@detector(needs=("source",), suggests=("missing-super-init",))
def check(run: Run) -> Findings:
    """A module gets its layers before, or without, `super().__init__()`.

    ## What it detects
    An object of a class that derives from `nn.Module` is given its first layer or parameter while
    the constructor of `nn.Module` has not run, whether in `__init__`, in a method that it calls, or
    in the `__post_init__` of a dataclass; or it has no layers, such as a loss, and is called so.

    ## Why it matters
    The registries of layers do not exist yet: constructing the model fails.

    ## What to do
    Make `super().__init__()` the first statement; of a dataclass, the first of `__post_init__`.

    ## When it is wrong
    A class without an `__init__` of its own needs no call. A class that something out of sight
    decorates, or hands its object to, may be initialised there and is left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for first in _firsts(story.events):
            node = first.model.cls.node
            if node not in seen and not is_test_file(first.event.module):
                seen.add(node)
                starts = [e for e in story.events if _initialises(e, first.model)]
                if not any(e.order < first.event.order for e in starts):
                    yield from _judge(story.events, first, starts)
        for call in _bare_calls(story.events):
            if call.cls.node not in seen and not is_test_file(call.event.module):
                seen.add(call.cls.node)
                yield _called(call)


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
class _BareCall:
    """The call of an object whose class never ran the constructor of nn.Module."""

    cls: ClassValue
    event: ProgramEvent
    built: ProgramEvent


def _bare_calls(events: Sequence[ProgramEvent]) -> Iterator[_BareCall]:
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
            yield _BareCall(own[0], event, built[id(model)])


def _called(call: _BareCall) -> Finding:
    builder = next(n for n in call.cls.node.body if getattr(n, "name", "") == "__init__")
    return finding(
        f"Class {call.cls.node.name} has an __init__ without super().__init__() and is called",
        "missing-super-init",
        Site(call.cls.module, builder),
        cite(call.built, "built here, and nn.Module is not initialised"),
        cite(call.event, "called here: nn.Module looks for its hooks and has none"),
        is_symptom=True,
    )


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


def _judge(
    events: Sequence[ProgramEvent], first: Assigned, starts: Sequence[ProgramEvent]
) -> Findings:
    cls = first.model.cls
    late = next((e for e in starts if e.order > first.event.order), None)
    if late is not None and not is_module_class(cls.external_bases):
        return  # a late call to a parent of one's own: templates that a generator unrolls
    if any(d not in RECORDS for c in cls.lineage() for d in decorators(c)):
        return
    how = "without super().__init__()" if late is None else "before super().__init__()"
    evidence = [cite(first.event, f"a layer is assigned here {how}")]
    if late is not None:
        evidence.append(cite(late, "the parent is initialised only here"))
    builder = first.event.function
    is_builder = getattr(builder, "name", "") in BUILDERS
    patch = (
        move_first(late) if late is not None else insert_first(first.event, "super().__init__()")
    )
    yield finding(
        f"Class {cls.node.name} assigns layers {how}",
        "missing-super-init",
        first.event,
        *evidence,
        is_symptom=True,
        patch=patch if is_builder else None,
    )


_NET = """
from dataclasses import dataclass
from torch import nn

{decorator}
class Net(nn.Module):
    def __init__(self, width):
        {first}
        self.fc = nn.Linear(width, 10)
        {last}
"""


def _net(first: str, last: str = "self.width = width", decorator: str = "") -> Run:
    text = _NET.format(first=first, last=last, decorator=decorator)
    return make_run(sources={"model.py": text})


_BUILT = """
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        {first}
        self.build(width)

    def build(self, width):
        self.fc = nn.Linear(width, 10)

model = Net(8)
"""
_RECORD = """
from dataclasses import dataclass
from torch import nn

@dataclass(eq=False)
class Net(nn.Module):
    width: int = 8

    def __post_init__(self):
        {first}
        self.fc = nn.Linear(self.width, 10)
"""

_LOSS = """
import torch
from torch import nn

class Contrast(nn.Module):
    def __init__(self, scale=0.5):
        {first}
        self.scale = scale

    def forward(self, a, b):
        return (a @ b.T / self.scale).logsumexp(1).mean()

net, loss = nn.Linear(8, 4), Contrast()
value = loss{call}(net(torch.randn(16, 8)), net(torch.randn(16, 8)))
"""

FIRES = {
    "a loss without layers, called": make_run(
        sources={"train.py": _LOSS.format(first="pass", call="")}
    ),
    "no call": _net("self.depth = 1"),
    "too late": _net("self.depth = 1", "super().__init__()"),
    "in a method that __init__ calls": make_run(sources={"model.py": _BUILT.format(first="pass")}),
    "in a dataclass": make_run(sources={"model.py": _RECORD.format(first="pass")}),
}

SILENT = {
    "a loss that calls it": make_run(
        sources={"train.py": _LOSS.format(first="super().__init__()", call="")}
    ),
    "near miss: only its forward is called": make_run(
        sources={"train.py": _LOSS.format(first="pass", call=".forward")}
    ),
    "first of all": _net("super().__init__()"),
    "near miss: layers in a method that __init__ calls": make_run(
        sources={"model.py": _BUILT.format(first="super().__init__()")}
    ),
    "near miss: a dataclass that calls it": make_run(
        sources={"model.py": _RECORD.format(first="super().__init__()")}
    ),
    "near miss: the old form": _net("super(Net, self).__init__()"),
    "near miss: by the parent's name": _net("nn.Module.__init__(self)"),
    "no __init__ of its own": make_run(
        sources={"m.py": "from torch import nn\nclass A(nn.Module):\n    layer = nn.ReLU()\n"}
    ),
}
