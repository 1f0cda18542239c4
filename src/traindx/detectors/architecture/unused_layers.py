"""Layers that a module builds and that nothing it returns depends on."""

from collections.abc import Iterator

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Instance, Value
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.idle_layers import (
    IdleMembers,
    idle_members,
    is_trained,
    is_unlearnt,
)
from traindx.analysis.program.training.layers import (
    Assigned,
    assigned,
    forward_passes,
    has_weights,
    is_layer,
    is_parameter,
    registered,
)
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

CAUSE = "unused-parameters"
WAYS = frozenset(
    {".children", ".modules", ".named_children", ".named_modules", ".get_submodule",
     "builtins.getattr", "builtins.setattr", "builtins.vars", "builtins.eval", "builtins.exec"}
)  # fmt: skip
KNOWN = ("torch.nn.", "lightning.", "pytorch_lightning.")  # bases that call no layer by themselves
PARALLEL = frozenset({"DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"})


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A module builds a layer that nothing it computes depends on.

    ## What it detects
    An attribute of a module that holds a layer with weights and that no code reads; and a layer
    that the forward pass calls, where nothing that it returns, keeps or trains on was computed from
    the result. Also a member of an `nn.ModuleList` that the forward pass never reaches while it
    calls the others, as where `zip` stops at a shorter list.

    ## Why it matters
    The weights never get a gradient. They cost memory, mislead the parameter count, and make
    DistributedDataParallel wait for gradients that do not come. Often the forward pass calls
    another layer twice where this one was meant, or forgets to use what it computed.

    ## What to do
    Call the layer where it was meant, use its result, or delete it.

    ## When it is wrong
    Code that reaches layers by other ways (`children()`, `getattr`) is left alone; code outside of
    the files at hand may use the layer.
    """
    program = program_of(run)
    is_parallel = any(
        e.name.rsplit(".", 1)[-1] in PARALLEL for s in program.stories for e in s.events
    )
    layers: dict[object, list[Assigned]] = {}
    for found in _layers(program):
        layers.setdefault(found.event.node, []).append(found)
    for every in layers.values():
        kept, same = every[-1], [a.value for a in every]
        if not program.may_read(kept.name):
            is_held = any(is_trained(s, v) for s in program.stories for v in same)
            if any(_is_called_inside(s, v) for s in program.stories for v in same):
                continue
            strength = Strength.STRONG if is_held else Strength.MODERATE if is_parallel else None
            yield _finding(kept, "built and never used", None, strength or Strength.WEAK)
            continue
        dead = _lost_result(program, same)
        if dead is not None:
            yield _finding(kept, "called and no loss depends on it", dead, Strength.STRONG)
    yield from _members(program)


def _members(program: Program) -> Iterator[Finding]:
    """Yield the members of lists that no program reaches; one list may have several lengths."""
    found: dict[object, list[IdleMembers]] = {}
    reached = _reached_otherwise(program)
    for story in program.stories:
        for idle in idle_members(story):
            found.setdefault(idle.kept.event.node, []).append(idle)
    for every in found.values():
        idle = every[-1]
        is_whole = _is_whole(idle.kept, reached) and not is_test_file(idle.call.module)
        if not is_whole or _is_reached_elsewhere(program, idle):
            continue
        which = ", ".join(str(place) for place in idle.places)
        name = idle.kept.name
        yield finding(
            f"The forward pass of {idle.kept.model.cls.node.name} never calls self.{name}[{which}]",
            CAUSE,
            idle.call,
            cite(idle.kept.event, "built here"),
            cite(idle.call, f"the others are called here, and number {which} never"),
            is_symptom=True,
        )


def _is_reached_elsewhere(program: Program, idle: IdleMembers) -> bool:
    """Tell whether another program that makes the same list calls all of it."""
    for story in program.stories:
        made = [a for a in assigned(story.events) if a.event.node is idle.kept.event.node]
        idle_there = [i.kept.model for i in idle_members(story)]
        if any(a.model not in idle_there and _is_run(story, a.model) for a in made):
            return True
    return False


def _is_run(story: Story, model: Value) -> bool:
    return any(model in event.within for event in story.events)


def _layers(program: Program) -> Iterator[Assigned]:
    """Yield the layers with weights that models are given, where only their names reach them."""
    reached = _reached_otherwise(program)
    for story in program.stories:
        if is_test_file(story.execution.module):
            continue
        for kept in assigned(story.events):
            is_plain = is_layer(kept.value) and not is_parameter(kept.value)
            if is_plain and has_weights(kept.value) is Answer.YES and _is_whole(kept, reached):
                yield kept


def _is_whole(kept: Assigned, reached: set[object]) -> bool:
    """Tell whether a class has its forward pass in sight, which looks layers up by name."""
    lineage = list(kept.model.cls.lineage())
    is_own = all(base.startswith(KNOWN) for cls in lineage for base in cls.external_bases)
    has_forward = any("forward" in cls.methods for cls in lineage)
    return is_own and has_forward and kept.model.cls.node not in reached


def _reached_otherwise(program: Program) -> set[object]:
    """The classes whose layers some code reaches by other ways than their names."""
    return {
        value.cls.node
        for story in program.stories
        for event in story.events
        if event.name in WAYS
        for value in (event.receiver, *event.args[:1])
        if isinstance(value, Instance)
    }


def _lost_result(program: Program, layers: list[Value]) -> ProgramEvent | None:
    """Return a call of a layer, where nothing comes of any."""
    found: list[ProgramEvent] = []
    for story in program.stories:
        if any("forward_hook" in e.name for e in story.events):
            return None  # what a layer computes may be taken by a hook
        for layer in layers:
            calls = forward_passes(story.events, layer)
            takers = [e for e in story.flow.takers(layer) if e not in calls]
            if any(e.receiver is not layer and e.act is EventForm.CALL for e in takers):
                return None  # handed to something that may call it
            if not is_unlearnt(story, layer, calls) and not _are_lost(story, calls):
                return None
            found += calls
    return found[0] if found else None


def _is_called_inside(story: Story, holder: Value) -> bool:
    """Tell whether a layer in a container is called by another way than the container."""
    inner = [part for part in registered(holder) if part is not holder]
    return any(forward_passes(story.events, part) for part in inner)


def _are_lost(story: Story, calls: list[ProgramEvent]) -> bool:
    """Tell whether nothing comes of some calls in a forward pass."""
    return not story.execution.gave_up and all(
        e.within and e.result is not None and story.flow.is_lost(e.result) for e in calls
    )


def _finding(kept: Assigned, how: str, call: ProgramEvent | None, strength: Strength) -> Finding:
    is_shown = strength is Strength.STRONG
    says = f"no code reads .{kept.name}" if call is None else "built here"
    more = () if call is None else (cite(call, "nothing is computed from this result"),)
    return Finding(
        claim=f"Layer self.{kept.name} of {kept.model.cls.node.name} is {how}",
        strength=strength,
        evidence=(cite(kept.event, says), *more),
        suggests={CAUSE: strength},
        shows=CAUSE if is_shown else None,
        is_symptom=is_shown,
        location=kept.event.location,
    )


_NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 8)
        self.fc2 = nn.Linear(8, 8)

    def forward(self, x):
        {body}
"""


def _net(body: str) -> Run:
    return make_run(sources={"model.py": _NET.format(body=body)})


FIRES = {
    "a layer called twice in place of another": _net("return self.fc1(self.fc1(x))"),
    "a gate that is computed and not applied": _net(
        "gate = self.fc2(x).sigmoid()\n        return self.fc1(x)"
    ),
}

_MEMBERS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.convs = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))
        self.norms = nn.ModuleList([nn.LayerNorm(8) for _ in range({norms})])

    def forward(self, x):
        {body}
        return x

out = Net()(torch.randn(4, 8))
"""


def _members_of(body: str, norms: str = "n - 1") -> Run:
    return make_run(sources={"model.py": _MEMBERS.format(body=body, norms=norms)})


FIRES |= {
    "a list that zip cuts short": _members_of(
        "for conv, norm in zip(self.convs, self.norms):\n            x = norm(conv(x))"
    ),
    "a list that is gone through without its end": _members_of(
        "for conv in self.convs[:-1]:\n            x = conv(x)\n"
        "        for norm in self.norms: x = norm(x)"
    ),
    "a place that is called twice": _members_of(
        "x = self.convs[0](x); x = self.norms[0](self.convs[1](x)); x = self.convs[1](x)", "1"
    ),
}

_LISTS = """
from torch import nn

class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, parts):
        return [self.left(parts[0]), self.right(parts[1])]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage = nn.Sequential(Stage(), Stage())

    def forward(self, x):
        x = self.stage([x, x])
        return x[0] + x[1]
"""

SILENT = {
    "near miss: the last one by its place": _members_of(
        "for conv, norm in zip(self.convs, self.norms):\n            x = norm(conv(x))\n"
        "        x = self.convs[-1](x)"
    ),
    "near miss: a list that is run whole": _members_of(
        "for conv, norm in zip(self.convs, self.norms):\n            x = norm(conv(x))", "n"
    ),
    "near miss: as many as are wanted": _members_of(
        "for conv, norm in zip(self.convs[:wanted], self.norms):\n            x = norm(conv(x))"
    ),
    "near miss: one by a name that the data give": _members_of(
        "x = self.convs[int(x.sum())](self.norms[int(x.mean())](x))"
    ),
    "near miss: added to a list that is paired with names": _net(
        "parts, names = [self.fc1(x)], ['a']\n        parts.extend([self.fc2(x)])\n"
        "        names.extend(more)\n        return dict((k, v) for k, v in zip(names, parts))"
    ),
    "near miss: a stage that gives a list": make_run(sources={"model.py": _LISTS}),
    "near miss: in a function that a library calls": _net(
        "graph.update_all(self.message)\n        return self.fc1(x)\n\n"
        "    def message(self, edges):\n        return {'m': edges.src * self.fc2(edges.data)}"
    ),
    "all are used": _net("return self.fc2(self.fc1(x))"),
    "near miss: written into another tensor": _net(
        "out = x.clone()\n        out[:, :4] = self.fc2(self.fc1(x))\n        return out"
    ),
    "near miss: decides what is computed": _net(
        "if self.fc2(x).mean() > 0:\n            return self.fc1(x)\n        return x"
    ),
    "near miss: kept for a loss elsewhere": _net("self.aux = self.fc2(x); return self.fc1(x)"),
    "near miss: reached by its name": _net("return getattr(self, 'fc2')(self.fc1(x))"),
    "near miss: reached as a child": _net("return [layer(x) for layer in self.children()][-1]"),
}
