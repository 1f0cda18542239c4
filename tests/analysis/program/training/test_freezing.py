"""Freezes that freeze nothing."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.freezing import vain_switches
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

TEXT = """
from torch import nn
model = nn.Linear(4, 2)
{freeze}
"""


@pytest.mark.parametrize(
    ("freeze", "name"),
    [
        ("model.requires_grad = False", "requires_grad"),
        ("for p in model.parameters(): p.require_grad = False", "require_grad"),
        ("for p in model.parameters(): p.requires_grad = False", ""),
        ("for p in model.parameters(): p.retains_grad = False", ""),
    ],
)
def test_vain_switches(freeze: str, name: str) -> None:
    found = each_place(script(TEXT, freeze=freeze), vain_switches, lambda pair: pair[0].node)
    assert [(event.name, value) for event, value in found] == ([(name, False)] if name else [])
