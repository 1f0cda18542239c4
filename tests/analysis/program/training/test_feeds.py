"""Which parameters get gradients at all."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Answer
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.feeds import cut_layers, feeds, unfed_steps
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

PAIR = """
import torch
from torch import nn
one, two = nn.Linear(4, 4), nn.Linear(4, 1)
first = torch.optim.Adam(one.parameters())
second = torch.optim.Adam(two.parameters())
for x, y in loader:
    h = one(x)
    own = h.pow(2).mean()
    loss = nn.functional.mse_loss(two({given}), y)
    {more}
    loss.backward()
    first.step()
    second.step()
"""


def story_of(given: str, more: str = "pass") -> Story:
    text = PAIR.format(given=given, more=more)
    return program_of(make_run(sources={"train.py": text})).stories[0]


@pytest.mark.parametrize(
    ("given", "more", "expected"),
    [
        ("h", "pass", Answer.YES),
        ("h.detach()", "pass", Answer.NO),
        ("x", "pass", Answer.NO),
        ("x", "remember(h)", Answer.UNKNOWN),
    ],
)
def test_what_a_backward_pass_feeds(given: str, more: str, expected: Answer) -> None:
    story = story_of(given, more)
    backward, optimizer = story.does(Do.BACKWARD)[0], story.made(Kind.OPTIMIZER)[0]
    assert feeds(story, backward, optimizer) is expected
    assert bool(list(unfed_steps(story))) is (expected is Answer.NO)


def test_a_layer_that_is_cut_off() -> None:
    text = """
import torch
from torch import nn
one, two = nn.Linear(4, 4), nn.Linear(4, 1)
both = torch.optim.Adam([*one.parameters(), *two.parameters()])
for x, y in loader:
    loss = nn.functional.mse_loss(two(one(x){cut}), y)
    loss.backward()
    both.step()
"""
    cut = program_of(make_run(sources={"train.py": text.format(cut=".detach()")})).stories[0]
    [found] = cut_layers(cut)
    assert "one" in found.layer.names
    whole = program_of(make_run(sources={"train.py": text.format(cut=".relu()")})).stories[0]
    assert cut_layers(whole) == []
