"""What the ranks of a program bring together, and what each of them gets for itself."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Result, Unknown, Value
from traindx.analysis.program.training.program import Program, Story

MEETINGS = frozenset({"all_reduce", "reduce", "broadcast", "all_gather", "all_reduce_coalesced"})
HELD = frozenset({"data", "grad"})
HOLDERS = frozenset({"parameters", "named_parameters", "state_dict", "buffers", "named_buffers"})
FARTHEST = 300  # values that one is computed from


def brings_weights_together(story: Story) -> bool:
    """Tell whether weights or gradients are sent between ranks, or something that may be these."""
    return any(_may_be_weights(v) for e in story.events for v in _sent(e))


def gives_parts_of_data(program: Program) -> ProgramEvent | None:
    """Return where each rank is given a part of one dataset."""
    samplers = (e for s in program.stories for e in s.events if _last(e) == "DistributedSampler")
    return next(program.once(samplers), None)


def _last(event: ProgramEvent) -> str:
    """The last part of what is called; a name that nothing binds stands for itself."""
    is_unbound = event.name == "()" and isinstance(event.receiver, Unknown)
    name = event.receiver.name if is_unbound and isinstance(event.receiver, Unknown) else event.name
    return name.rsplit(".", 1)[-1]


def _sent(event: ProgramEvent) -> Iterator[Value]:
    if _last(event) in MEETINGS:
        given = [v for k, v in event.kwargs.items() if k.startswith(("tensor", "object"))]
        yield from (*event.args[:2], *given)


def _may_be_weights(value: Value) -> bool:
    if isinstance(value, Unknown):
        return True
    seen, pending = {id(value)}, [value]
    while pending and len(seen) < FARTHEST:
        here = pending.pop()
        if isinstance(here, Part) and here.key in HELD:
            return True
        if isinstance(here, Result) and here.maker.rsplit(".", 1)[-1] in HOLDERS:
            return True
        for source in here.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return False
