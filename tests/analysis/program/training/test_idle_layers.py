"""Members of lists that nothing calls, and layers that are kept where torch does not look."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.idle_layers import idle_members
from traindx.analysis.program.training.layers import is_layer, kept_apart
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

NET = """
import torch
from torch import nn

class Holder:
    def __init__(self):
        self.one, self.more = nn.Linear(2, 2), {{"a": [nn.Linear(2, 2)], "b": 3}}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        {body}
        return x

holder = Holder()
Net()(torch.randn(2, 4))
"""


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ("for layer in self.layers[1:]: x = layer(x)", (0,)),
        ("x = self.layers[2](x)", (0, 1)),
        ("for layer, _ in zip(self.layers, [1, 2]): x = layer(x)", (2,)),
        ("for layer in self.layers: x = layer(x)", None),
        ("x = self.layers[int(x.sum())](x)", None),
        ("for layer in self.layers[:n]: x = layer(x)", None),
        ("x = run(self.layers, self.layers[0](x))", None),
        ("pass", None),
    ],
)
def test_members_that_are_never_called(body: str, places: tuple[int, ...] | None) -> None:
    story = program_of(make_run(sources={"t.py": NET.format(body=body)})).stories[0]
    found = list(idle_members(story))
    assert (found[0].places if found else None) == places


def test_layers_in_a_plain_object() -> None:
    story = program_of(make_run(sources={"t.py": NET.format(body="pass")})).stories[0]
    holder = next(a.value for a in story.execution.assignments if a.name == "holder")
    assert sum(is_layer(v) for v in kept_apart(holder)) == 2
