"""Layers that nothing registers, that come before nn.Module is ready, or that nothing uses."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.stray_layers import made_in_forward, stray_members
from traindx.analysis.program.training.super_calls import EarlyLayer, unready_modules
from traindx.analysis.program.training.unused_parts import unreached_members, unused_layers
from traindx.examples import template

_net = template(
    """
class Net(nn.Module):
    def __init__(self, n=2):
        {start}
        {layers}

    def forward(self, x):
        {body}

net = Net()
net(torch.randn(2, 8)).sum().backward()
""",
    layers="self.parts = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))",
    body="return self.parts[1](self.parts[0](x))",
    start="super().__init__()",
)
TWO = "self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)"


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ("self.parts = [nn.Linear(8, 8), nn.Linear(8, 8)]", ["parts"]),
        ("self.parts = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])", []),
        ("self.parts = [nn.ReLU(), nn.Tanh()]", []),
    ],
)
def test_layers_that_nothing_registers(layers: str, names: list[str]) -> None:
    (story,) = program_of(_net(layers)).stories
    assert [kept.name for kept in stray_members(story)] == names


def test_a_layer_that_a_forward_pass_makes() -> None:
    (story,) = program_of(_net("pass", "return nn.Linear(8, 2)(x)")).stories
    assert {event.name for event in made_in_forward(story)} == {"torch.nn.Linear"}


@pytest.mark.parametrize(("start", "count"), [("pass", 1), ("super().__init__()", 0)])
def test_a_layer_before_the_constructor(start: str, count: int) -> None:
    found = [*unready_modules(program_of(_net(start=start)))]
    assert len(found) == count
    assert all(isinstance(f, EarlyLayer) and f.late is None for f in found)


@pytest.mark.parametrize(
    ("body", "unused"),
    [
        ("return self.a(self.a(x))", [("b", False)]),
        ("gate = self.b(x); return self.a(x)", [("b", True)]),
        ("return self.b(self.a(x))", []),
        ("return getattr(self, 'b')(self.a(x))", []),
    ],
)
def test_layers_that_nothing_uses(body: str, unused: list[tuple[str, bool]]) -> None:
    found = unused_layers(program_of(_net(TWO, body)))
    assert [(u.kept.name, u.call is not None) for u in found] == unused


def test_a_member_that_is_never_called() -> None:
    (idle,) = unreached_members(program_of(_net(body="return self.parts[0](x)")))
    assert idle.places == (1,)
