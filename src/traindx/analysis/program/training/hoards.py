"""Lists that a training loop adds tensors to and never takes any from."""

from __future__ import annotations

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Items, Result, Value
from traindx.analysis.program.training.phases import training_loops
from traindx.analysis.program.training.program import Program, Story
from traindx.analysis.program.training.tensors import is_tensor

SHRINKS = frozenset({".clear", ".pop", ".popleft", ".remove", ".__delitem__"})
TENSOR_METHODS = frozenset({".detach", ".clone", ".cpu", ".numpy"})  # what only a tensor has


def hoard_of(program: Program) -> ProgramEvent | None:
    """Return the call that adds a tensor in every step to a list that nothing shortens."""
    for story in program.stories:
        for loop in training_loops(story):
            for event in loop.events:
                if event.name == ".append" and event.args and _only_grows(story, event):
                    return event
    return None


def is_emptied(story: Story, kept: Value) -> bool:
    """Tell whether anything is ever taken out of a list: `kept.clear()`, `del kept[:]`."""
    for event in story.events:
        if event.receiver is kept and (event.name in SHRINKS or event.name == "[]"):
            return True
        if event.name == "operator.delitem" and event.args[0] is kept:
            return True
    return False


def _only_grows(story: Story, event: ProgramEvent) -> bool:
    kept = event.receiver
    if not isinstance(kept, Items) or kept.born or is_emptied(story, kept):
        return False
    return _is_kept_tensor(story, event.args[0])


def _is_kept_tensor(story: Story, value: Value) -> bool:
    is_made = isinstance(value, Result) and value.maker in TENSOR_METHODS
    return is_made or is_tensor(story, value) is Answer.YES
