"""A loss is severed where nothing that the layers compute from data reaches it with a gradient."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.gradients import Cut
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.severance import flat_layers, lost_history
from traindx.examples import make_run

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader

body, head = nn.Linear(8, 4), nn.Linear(4, 2)
gain = nn.Parameter(torch.ones(1))
opt = torch.optim.SGD([*body.parameters(), *head.parameters(), gain], lr=0.1)
for x, y in DataLoader(data, 8):
    {forward}
    loss = nn.functional.mse_loss(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("forward", "cuts"),
    [
        ("out = gain * head(body(x)).detach()", {Cut.DETACHED}),
        ("out = gain * torch.round(head(body(x)))", {Cut.FLAT}),
        ("with torch.no_grad():\n        z = head(body(x))\n    out = gain * z", {Cut.UNRECORDED}),
        ("out = head(body(x).detach())", set()),
        ("out = gain * head(body(x))", set()),
        ("out = gain * head(body(x)).detach() + other(x)", set()),
    ],
)
def test_what_cuts_a_loss_off(forward: str, cuts: set[Cut]) -> None:
    story = program_of(make_run(sources={"t.py": PROGRAM.format(forward=forward)})).stories[0]
    backward = story.does(Do.BACKWARD)[0]
    assert {how for how, _ in lost_history(story, backward)} == cuts


@pytest.mark.parametrize(
    ("forward", "is_lost"),
    [
        ("out = head((body(x) > 0).float())", True),
        ("out = head(torch.bernoulli(body(x).sigmoid()))", True),
        ("h = body(x)\n    out = head(h * (h > 0).float())", False),
        ("out = head(body(x).detach())", False),
    ],
)
def test_layers_that_no_loss_reaches_but_through_a_step(forward: str, is_lost: bool) -> None:
    story = program_of(make_run(sources={"t.py": PROGRAM.format(forward=forward)})).stories[0]
    assert bool(flat_layers(story)) is is_lost
