"""Models that stay where they were made."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.facts.unmoved_models import stays_on_cpu
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
import copy
from accelerate import Accelerator
from torch import nn
net, other = nn.Linear(8, 2), nn.Linear(8, 2)
{lines}
out = other(x)
"""


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ("net.cuda()", True),
        ("other.to(device)", False),
        ("nn.Sequential(net, other).to(device)", False),
        ("other = copy.deepcopy(net); net.cuda()", True),
        ("net.cuda(); other = copy.deepcopy(net)", False),
        ("net = Accelerator().prepare(net)", True),
        ("net, other = Accelerator().prepare(net, other)", False),
        ("place(other)", False),
        ("other = nn.Linear(8, 2, device=device)", False),
    ],
)
def test_a_model_that_nothing_moves(lines: str, stays: bool) -> None:
    story = program_of(make_run(sources={"t.py": PROGRAM.format(lines=lines)})).stories[0]
    (forward,) = story.does(Do.FORWARD)
    assert forward.subject is not None
    assert stays_on_cpu(story, forward.subject, forward.event) is stays


APART = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 2)
    def forward(self, x):
        return self.out(x)
net = Net().cuda()
def show(batch):
    net.eval()
    return net(batch.cuda())
"""


def test_a_model_that_another_part_of_the_program_made_may_have_been_moved_there() -> None:
    stories = program_of(make_run(sources={"t.py": APART})).stories
    forwards = [
        (s, d) for s in stories for d in s.does(Do.FORWARD) if d.event.function_name == "show"
    ]
    assert forwards
    for story, forward in forwards:
        assert forward.subject is not None
        assert not stays_on_cpu(story, forward.subject, forward.event)
