"""Where a training step makes the host wait for the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Guard, ProgramEvent
from traindx.analysis.program.execution.library import LISTINGS
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.facts.tensor_devices import TensorPlace
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.phases import is_every_turn
from traindx.analysis.program.training.tensors import is_tensor

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

FORCED = {"torch.cuda.empty_cache": "empties the cache of the device",
          "torch.cuda.synchronize": "waits for the device",
          "gc.collect": "collects garbage"}  # fmt: skip
READS = (".item", ".cpu", ".numpy", ".tolist")
NUMBERS = (".item", ".tolist")
CONVERTS = ("builtins.float", "builtins.int")  # of a tensor, they read it back
DECIDES = frozenset({"operator.gt", "operator.lt", "operator.ge", "operator.le", "operator.eq",
                     "operator.ne", ".any", ".all", "torch.any", "torch.all"})  # fmt: skip

MOVES = ("to", "cuda")
NO_TENSORS = (*READS, ".numel", ".nelement", ".size", ".dim", ".element_size", "()")


@dataclass(frozen=True, eq=False)
class StepWaits:
    """What one training step waits for, in every turn of its loop."""

    backward: Deed
    forced: tuple[ProgramEvent, ...]  # calls that do nothing but wait
    reads: tuple[ProgramEvent, ...]  # values that are read back, once in a step
    repeated: tuple[ProgramEvent, ...]  # values that are read back for each parameter or sample
    returned: tuple[ProgramEvent, ...]  # values that a pass reads back and the host had before


def step_waits(story: Story) -> Iterator[StepWaits]:
    """Yield the waits of each training step of a program for CUDA, each loop once."""
    if not story.program.recall(_speaks_of_cuda):
        return
    seen: set[object] = set()
    for backward in story.does(Do.BACKWARD):
        event = backward.event
        if event.loops and event.loops[-1].site.node not in seen and not event.by_framework:
            seen.add(event.loops[-1].site.node)
            yield _waits(story, backward)


def _speaks_of_cuda(program: Program) -> bool:
    return any("cuda" in m.text for m in program.project.training_modules)


def _waits(story: Story, backward: Deed) -> StepWaits:
    turns = backward.event.turns
    inside = [e for e in story.events if e.turns[: len(turns)] == turns]
    calls = [e for e in inside if is_every_turn(_unguarded(e), backward.event)]
    reads = [e for e in calls if read_by(story, e) is not None and not _is_read_before(e)]
    decides = story.recall(_deciding)
    reads = [e for e in reads if id(e.result) not in decides]
    return StepWaits(
        backward,
        tuple(e for e in calls if e.name in FORCED and e.turns == turns),
        tuple(e for e in reads if e.turns == turns),
        tuple(e for e in reads if e.turns != turns and _is_of_the_step(story, e, len(turns))),
        tuple(e for e in reads if e.within and _is_number(e) and _had_before(story, e)),
    )


def read_by(story: Story, event: ProgramEvent) -> Value | None:
    """Return the tensor that an event reads back: `x.item()`, `float(x)`; None where it is none."""
    if event.name in READS and not event.args:
        return event.receiver
    if _decides_a_branch(event):
        return _on_device(story, event)
    given = event.args[0] if event.name in CONVERTS and len(event.args) == 1 else None
    is_placed = given is not None and (story.places.of(given) is not None or _is_of_weights(given))
    return given if is_placed or is_tensor(story, given) is Answer.YES else None


def _decides_a_branch(event: ProgramEvent) -> bool:
    """Tell whether a comparison, `.any()` or `.all()` is what an `if` asks: Python reads it."""
    if event.name not in DECIDES or event.module is None:
        return False
    statement = event.statement
    test = getattr(statement, "test", None)
    return isinstance(statement, (ast.If, ast.While, ast.Assert)) and any(
        part is event.node for part in _asked(test)
    )


def _asked(test: ast.AST | None) -> Iterator[ast.AST]:
    """Yield the parts of a condition whose truth is asked one by one."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _asked(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _asked(test.operand)
    elif test is not None:
        yield test


def _on_device(story: Story, event: ProgramEvent) -> Value | None:
    """Return the tensor that a comparison is of, where it is on the device for certain."""
    for given in (event.receiver, *event.args[:2]):
        if given is None or isinstance(given, Known):
            continue
        if _is_of_weights(given) or story.places.of(given) is TensorPlace.ACCELERATOR:
            return given
    return None


def _is_of_weights(value: Value) -> bool:
    """Tell whether a method of a weight or its gradient gives a tensor: `p.grad.norm()`."""
    if not isinstance(value, Result) or value.receiver is None or value.maker in NO_TENSORS:
        return False
    return _lists_parameters(value)


def _is_number(event: ProgramEvent) -> bool:
    """Tell whether numbers are read back: what a layer needs on the CPU is copied as a tensor."""
    return event.name in (*NUMBERS, *CONVERTS)


def _had_before(story: Story, read: ProgramEvent) -> bool:
    """Tell whether what is read was moved to the device, and nothing was learned of it there."""
    pending, is_moved = [read_by(story, read)], False
    for _ in range(60):
        value = pending.pop() if pending else None
        if value is None:
            return is_moved
        operation = operation_of(value)
        if operation is not None and operation.name in MOVES:
            if story.places.of(value) is not TensorPlace.ACCELERATOR:
                return False
            is_moved = True
        elif isinstance(value, (Result, Part, Items)) and getattr(value, "maker", "") != "()":
            pending.extend(value.inputs)
        elif not isinstance(value, Known):
            return False
    return False


def _unguarded(event: ProgramEvent) -> ProgramEvent:
    """Return an event without conditions that something, or a GPU, is there."""
    tests = ("operator.is", "operator.is_not")
    kept = (
        g for g in event.guards
        if not (isinstance(g.test, Result) and g.test.maker in tests) and not _asks_device(g)
    )  # fmt: skip
    return replace(event, guards=tuple(kept))


def _asks_device(guard: Guard) -> bool:
    """Tell whether a condition holds wherever there is a GPU: `device.type == "cuda"`."""
    test, holds = guard.test, guard.holds
    if isinstance(test, Result) and test.maker == "operator.not":
        test, holds = test.args[0], not holds
    if isinstance(test, Result) and test.maker == "torch.cuda.is_available":
        return holds
    if isinstance(test, Part) and test.key == "is_cuda":
        return holds
    if not isinstance(test, Result) or test.maker not in ("operator.eq", "operator.ne"):
        return False
    wanted = holds is (test.maker == "operator.eq")
    named = {constant(v) for v in test.args if isinstance(v, Known)}
    return ("cuda" in named and wanted) or ("cpu" in named and not wanted)


def _is_read_before(event: ProgramEvent) -> bool:
    """Tell whether what is read was read back already: `x.cpu().numpy()` waits once."""
    return isinstance(event.receiver, Result) and event.receiver.maker in READS


def _deciding(story: Story) -> set[int]:
    """The values that decide whether an optimizer steps: they have to be read back."""
    tests = (g.test for d in story.does(Do.STEP) for g in d.event.guards)
    return {id(v) for test in tests if test is not None for v in origins(test, 200)}


def _is_of_the_step(story: Story, read: ProgramEvent, depth: int) -> bool:
    """Tell whether a loop inside of a step reads results of the step, or of every parameter.

    An episode that asks the model for each of its actions has to read each of them.
    """
    inner = [turn.loop for turn in read.turns[depth:] if not turn.loop.is_whole]
    tensor = read_by(story, read)
    if not inner or tensor is None:
        return False
    if any(_lists_parameters(run.over) for run in inner if run.over is not None):
        return True
    passes = {id(d.event.result) for d in story.does(Do.FORWARD) if len(d.event.turns) == depth}
    return any(id(v) in passes for v in origins(tensor, 400))


def _lists_parameters(over: Value) -> bool:
    found = (v for v in origins(over, 40) if isinstance(v, Result))
    return any(v.maker in LISTINGS for v in found)
