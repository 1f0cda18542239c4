"""Lists that a training loop adds tensors to and never takes any from."""

from __future__ import annotations

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Items, Result, Value
from traindx.analysis.program.training.graphs import is_emptied
from traindx.analysis.program.training.phases import training_loops
from traindx.analysis.program.training.program import Program, Story
from traindx.analysis.program.training.tensors import is_tensor

TENSOR_METHODS = frozenset({".detach", ".clone", ".cpu", ".numpy"})  # what only a tensor has


def hoard_of(program: Program) -> ProgramEvent | None:
    """Return the call that adds a tensor in every step to a list that nothing shortens."""
    for story in program.stories:
        for loop in training_loops(story):
            for event in loop.events:
                if event.name == ".append" and event.args and _only_grows(story, event):
                    return event
    return None


def _only_grows(story: Story, event: ProgramEvent) -> bool:
    kept = event.receiver
    if not isinstance(kept, Items) or kept.born or is_emptied(story, kept):
        return False
    return _is_kept_tensor(story, event.args[0])


def _is_kept_tensor(story: Story, value: Value) -> bool:
    is_made = isinstance(value, Result) and value.maker in TENSOR_METHODS
    return is_made or is_tensor(story, value) is Answer.YES
