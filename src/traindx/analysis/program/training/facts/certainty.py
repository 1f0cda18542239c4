"""Whether what an event does surely happens, in the state that was followed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Guard, LoopRun, ProgramEvent
from traindx.analysis.program.execution.values import Part, Result, Unknown, Value, origins

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# questions about a tensor or a setting: what follows may be made for the other case
ASKED = frozenset({"shape", "ndim", "dtype", "device", "is_cuda", "training"})
QUESTIONS = frozenset(
    {".size", ".dim", ".ndimension", ".numel", "builtins.isinstance", "builtins.hasattr",
     "torch.is_tensor", ".is_floating_point", "builtins.callable", "operator.is",
     "operator.is_not", "builtins.type", ".parse_args", ".get"}
)  # fmt: skip


def makers(story: Story) -> dict[Value, ProgramEvent]:
    """Return the event that makes each value; a call that only hands it on made none."""
    return story.recall(_makers)


def _makers(story: Story) -> dict[Value, ProgramEvent]:
    found: dict[Value, ProgramEvent] = {}
    for event in story.events:
        if event.result is not None and event.result.site is event.site:
            found[event.result] = event
        elif event.result is not None and not event.is_own:
            found.setdefault(event.result, event)
    return found


def makes(event: ProgramEvent) -> bool:
    """Tell whether an event makes its result, and does not only hand it on."""
    result = event.result
    is_here = result is not None and result.site is not None and result.site.node is event.node
    return is_here or event.name == "()"


def is_certain(event: ProgramEvent) -> bool:
    """Tell whether an event happens where its turn comes, whatever the program is given."""
    is_first = all(t.loop.is_whole or t.number == 0 for t in event.turns)
    is_first = is_first and not any(_is_of_trainer(t.loop) for t in event.turns)
    if event.is_tried or _is_one_of_several(event):
        return False
    return is_first and not any(_is_open(g) for g in event.guards)


def _is_one_of_several(event: ProgramEvent) -> bool:
    """Tell whether it is done in one of several calls that may be meant: `layers[i](x)`."""
    calls = {event.node, *(site.node for site in event.callers)}
    return any(guard.site.node in calls for guard in event.guards)


def _is_of_trainer(loop: LoopRun) -> bool:
    """Tell whether a trainer goes over a dataset by itself: its rows stand for batches."""
    return isinstance(loop.site.node, ast.Call)


def _is_open(guard: Guard) -> bool:
    """Tell whether a condition may have been made for what would fail behind it."""
    return guard.test is None or any(_asks(value) for value in origins(guard.test, 60))


def _asks(value: Value) -> bool:
    if isinstance(value, Part):
        return value.key in ASKED
    is_question = isinstance(value, Result) and value.maker in QUESTIONS
    return is_question or isinstance(value, Unknown)
