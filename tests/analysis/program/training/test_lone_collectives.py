"""Every rank calls a collective."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.lone_collectives import lone_collectives
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch.distributed as dist
rank = dist.get_rank()
{text}
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("if rank == 0: dist.barrier()", ["barrier"]),
        ("if rank == 0: pass\nelse: dist.all_reduce(x)", ["all_reduce"]),
        ("dist.all_reduce(x)", []),
        ("if dist.get_world_size() > 1: dist.all_reduce(x)", []),
        ("if rank == 0: dist.barrier()\nelse: dist.barrier()", []),
        ("if rank == 0: dist.all_reduce(x, group=pair)", []),
    ],
)
def test_collectives_of_some_ranks(text: str, names: list[str]) -> None:
    (story,) = program_of(script(PROGRAM, text=text)).stories
    assert [found.name for found in lone_collectives(story)] == names
