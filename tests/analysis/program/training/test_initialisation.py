"""What weights begin with."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.initialisation import constant_weights, draws, fan_in, fills
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run


def story_of(text: str) -> Story:
    start = "import torch\nfrom torch import nn\n"
    return program_of(make_run(sources={"train.py": start + text})).stories[0]


@pytest.mark.parametrize(
    ("written", "mean", "std"),
    [
        ("nn.init.normal_(net.weight, 0.02)", 0.02, 1.0),
        ("nn.init.normal_(net.weight, std=0.02)", 0.0, 0.02),
        ("nn.init.trunc_normal_(net.weight, 0.0, 0.5)", 0.0, 0.5),
        ("net.weight.data.normal_(0, 3)", 0.0, 3.0),
        ("nn.init.uniform_(net.weight, -6**0.5, 6**0.5)", 0.0, 2**0.5),
        ("nn.init.uniform_(net.weight)", 0.5, 12**-0.5),
    ],
)
def test_the_spread_of_a_weight(written: str, mean: float, std: float) -> None:
    story = story_of(f"net = nn.Linear(9, 2)\n{written}\n")
    [draw] = draws(story)
    assert (draw.mean, draw.std) == (pytest.approx(mean), pytest.approx(std))
    assert fan_in(story, draw.owner) == 9
    assert draw.gain(9) == pytest.approx(3 * (mean**2 + std**2) ** 0.5)


@pytest.mark.parametrize(
    ("made", "std", "fan"),
    [
        ("nn.Parameter(torch.randn(16, 4))", 1.0, 16),
        ("nn.Parameter(0.1 * torch.randn(16, 4))", 0.1, 16),
        ("nn.Parameter(torch.randn(16, 4) / 2)", 0.5, 16),
        ("torch.randn(16, 4, requires_grad=True)", 1.0, 16),
    ],
)
def test_the_spread_of_a_parameter(made: str, std: float, fan: int) -> None:
    story = story_of(f"w = {made}\nfor x in loader:\n    y = x @ w\n")
    [draw] = draws(story)
    assert draw.std == pytest.approx(std)
    assert fan_in(story, draw.owner) == fan


def test_what_is_not_known() -> None:
    for written in ("nn.init.normal_(net.weight, 0, scale)", "nn.init.kaiming_normal_(net.weight)",
                    "nn.init.normal_(net.weight)\nnet.load_state_dict(saved)"):  # fmt: skip
        assert draws(story_of(f"net = nn.Linear(9, 2)\n{written}\n")) == []


@pytest.mark.parametrize(
    "condition",
    [
        "isinstance(m, nn.Linear)",
        "type(m) is nn.Linear",
        "type(m) == nn.Linear",
        "type(m) in (nn.Linear, nn.Conv2d)",
        "m.__class__.__name__ == 'Linear'",
        "m.__class__.__name__.find('Linear') != -1",
        "hasattr(m, 'weight')",
    ],
)
def test_layers_of_a_model_are_told_apart(condition: str) -> None:
    story = story_of(f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)
net = Net()
for name, m in net.named_modules():
    if {condition}:
        nn.init.zeros_(m.weight)
""")
    assert len(fills(story)) == 2


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("for m in (net[0], net[2]):\n    nn.init.zeros_(m.weight)", [True]),
        ("nn.init.zeros_(net[2].weight)", []),
        ("for p in net.parameters():\n    p.data.zero_()\nloss.backward()", [True]),
        ("for p in net.parameters():\n    p.data.zero_()", []),
    ],
)
def test_constant_weights(text: str, pairs: list[bool]) -> None:
    start = "net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))\n"
    found = constant_weights(story_of(start + text).program)
    assert [other is not None for _, other in found] == pairs
