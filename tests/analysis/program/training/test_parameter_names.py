"""Parameters that are picked by name are known one by one, where the whole model is in sight."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.parameter_names import PARAMETER
from traindx.analysis.program.execution.values import origins
from traindx.analysis.program.training.configuration import is_same_setting
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.ownership import parameters_given
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
import timm
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, extra=None):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(4))
        self.blocks = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4, bias=False))
        self.norm = nn.LayerNorm(4)
        {more}
    def forward(self, x):
        return self.norm(self.blocks(x + self.token))

net = Net()
opt = torch.optim.SGD([p for n, p in net.named_parameters() if {test}], lr=0.1)
"""


def held(test: str, more: str = "pass") -> int:
    """Return how many tensors the optimizer is known to get."""
    story = program_of(make_run(sources={"t.py": PROGRAM.format(test=test, more=more)})).stories[0]
    given = parameters_given(story.made(Kind.OPTIMIZER)[0])
    assert given is not None
    return len([v for v in origins(given) if PARAMETER in v.fields])


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ("True", 6),
        ('n.endswith("weight")', 3),
        ('"token" in n', 1),
        ('n.startswith("blocks.2")', 1),
        ('not n.endswith(("bias", "token"))', 3),
    ],
)
def test_a_selection_by_name(test: str, count: int) -> None:
    assert held(test) == count


def test_a_part_out_of_sight_leaves_all_open() -> None:
    assert held('"token" in n', "self.extra = timm.create_model('vit')\n") == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("lr", "learning_rate", True),
        ("batch_size", "batchSize", True),
        ("act", "activation", True),
        ("epochs", "num_epochs", True),
        ("lr", "length", False),
        ("min_lr", "max_lr", False),
        ("dropout", "drop_last", False),
        ("lr", "lr", False),
    ],
)
def test_two_names_of_one_setting(one: str, other: str, same: bool) -> None:
    assert is_same_setting(one, other) is same
