"""What is asked of every story of a program."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.training.program import Story, each_place
from traindx.examples import script


def test_a_place_comes_once() -> None:
    def printed(story: Story) -> Iterator[ProgramEvent]:
        return (e for e in story.events if e.name == "builtins.print")

    run = script("import torch\nfor i in range(3):\n    print(torch.zeros(i))\nprint()\n")
    found = each_place(run, printed, lambda event: event.node)
    assert [len(event.args) for event in found] == [1, 0]
