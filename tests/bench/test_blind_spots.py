"""What the measurement of lost sight says of small programs."""

from __future__ import annotations

import pytest
from bench.blind_spots import blind_spots

from traindx.examples import make_run

TEXT = """
import torch
from torch import nn

net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
for _ in range(10):
    optimizer.zero_grad()
    out = net(x)
    {line}
    loss = nn.functional.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "spot"),
    [
        ("out = stranger(out)", ("callee", "() of Unknown")),
        ("out = stranger.adapt(out)", ("callee", ".adapt of Unknown")),
        ("out = out.of_another_day()", ("shape", ".of_another_day gives nothing")),
        ("out = out.of_another_day()", ("dtype", ".of_another_day")),
    ],
)
def test_what_loses_sight(line: str, spot: tuple[str, str]) -> None:
    assert spot in set(blind_spots(make_run(sources={"t.py": TEXT.format(line=line)})))


def test_a_program_in_full_sight() -> None:
    spots = set(blind_spots(make_run(sources={"t.py": TEXT.format(line="pass")})))
    assert not [spot for spot in spots if spot[0] in ("act", "callee", "function", "guard")]


def test_training_without_its_acts() -> None:
    found = set(
        blind_spots(make_run(sources={"t.py": "from torch import nn\nnet = nn.Linear(2, 1)"}))
    )
    assert {("act", "no backward"), ("act", "no step"), ("act", "no loss")} <= found
