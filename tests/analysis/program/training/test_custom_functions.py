"""Operations with a gradient of their own, and what both directions compute."""

from __future__ import annotations

import numpy as np

from traindx.analysis.program.execution.values import Items
from traindx.analysis.program.training.custom_functions import CustomFunction, custom_functions
from traindx.analysis.program.training.elementwise import PointwiseEvaluation, is_smooth
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

TEXT = """
import torch

def gate(x, beta):
    return torch.sigmoid(beta * x)

class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return {forward}

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        kept = grad.clone()
        kept[x < 0] = 0
        return kept * ctx.beta, None

swish = Swish.apply
{use}
"""


def _function(forward: str = "x * gate(x, beta)", use: str = "swish(data, 2.0)") -> CustomFunction:
    run = make_run(sources={"ops.py": TEXT.format(forward=forward, use=use)})
    return custom_functions(program_of(run))[0]


def test_both_directions_run() -> None:
    found = _function()
    assert found.is_applied and found.counts() == (2, 2) and found.unsaved_read() is None
    assert not found.passes_on()
    assert not _function(use="").is_applied


def test_a_function_that_passes_its_input_on() -> None:
    assert _function("x.view_as(x)").passes_on()


def test_values_at_points() -> None:
    found = _function()
    points = np.array([-1.0, 2.0])
    known = ((found.inputs[0], points), (found.backward.args[1], np.ones(2)))
    evaluation = PointwiseEvaluation(known, found.story.events)
    expected = points / (1 + np.exp(-2 * points))
    assert np.allclose(evaluation.of(found.forward.result), expected)
    returned = found.backward.result
    assert isinstance(returned, Items)
    assert np.allclose(evaluation.of(returned.members[0]), [0.0, 2.0])


def test_smoothness() -> None:
    assert is_smooth((found := _function()).forward.result, found.inputs)
    kinked = _function("x.clamp(min=0)")
    assert not is_smooth(kinked.forward.result, kinked.inputs)
