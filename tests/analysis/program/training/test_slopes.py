"""A gradient of one's own is compared with the slope of its function."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.custom_functions import custom_functions
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.slopes import wrong_slope
from traindx.examples import script

PROGRAM = """
import torch

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return {backward}

Own.apply(torch.ones(3))
"""


@pytest.mark.parametrize(
    ("forward", "backward", "said"),
    [
        ("x.exp()", "-grad * x.exp()", "opposite sign"),
        ("x.clamp(min=0)", "grad * (x < 0)", "is 0 wherever"),
        ("x.exp()", "grad * x.exp()", ""),
        ("torch.sign(x)", "grad", ""),
    ],
)
def test_a_gradient_against_its_slope(forward: str, backward: str, said: str) -> None:
    run = script(PROGRAM, forward=forward, backward=backward)
    (function,) = custom_functions(program_of(run))
    wrong = wrong_slope(function)
    assert (wrong is not None) == bool(said)
    assert wrong is None or said in wrong[0]
