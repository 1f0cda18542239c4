"""What a backward pass runs through, and whether it leaves the graph as it is."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.gradient_paths import GradientPath, keeps_graph
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

NETS = """
import torch
from torch import nn
body, head = nn.Linear(8, 4), nn.Linear(4, 1)
h = body(x)
out = head(h)
{call}
"""


def _story(call: str) -> Story:
    return program_of(make_run(sources={"t.py": NETS.format(call=call)})).stories[0]


@pytest.mark.parametrize(
    ("call", "reaches_body"),
    [
        ("out.sum().backward()", True),
        ("torch.autograd.grad(out.sum(), body.weight)", True),
        ("torch.autograd.grad(out.sum(), list(body.parameters()))", True),
        ("torch.autograd.grad(out.sum(), [*head.parameters()])", False),
        ("torch.autograd.grad(out.sum(), x)", True),
        ("torch.autograd.grad(out.sum(), h)", False),
        ("torch.autograd.grad(out.sum(), out)", False),
    ],
)
def test_the_way_to_what_gradients_are_asked_of(call: str, reaches_body: bool) -> None:
    story = _story(call)
    (backward,) = story.does(Do.BACKWARD, Do.GRAD)
    first = story.does(Do.FORWARD)[0].event.result
    assert first is not None
    assert GradientPath(backward).passes(first) is reaches_body


@pytest.mark.parametrize(
    ("call", "keeps"),
    [
        ("out.sum().backward()", False),
        ("out.sum().backward(None, True)", True),
        ("out.sum().backward(retain_graph=keep)", True),
        ("torch.autograd.grad(out.sum(), body.weight)", False),
        ("torch.autograd.grad(out.sum(), body.weight, None, True)", True),
        ("torch.autograd.grad(out.sum(), body.weight, create_graph=True)", True),
    ],
)
def test_a_graph_that_is_kept(call: str, keeps: bool) -> None:
    (backward,) = _story(call).does(Do.BACKWARD, Do.GRAD)
    assert keeps_graph(backward) is keeps
