"""Of which family of torch an object is: module, optimizer, schedule, or none."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import constant
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

START = """
from pathlib import Path
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, StepLR
model = nn.Sequential(nn.Linear(4, 2))
optimizer = torch.optim.Adam(model.parameters())
schedule = StepLR(optimizer, 3)
path = Path("runs") / "last.pt"
"""


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("optimizer, torch.optim.Optimizer", True),
        ("schedule, torch.optim.Optimizer", False),
        ("schedule, (torch.optim.Optimizer, LRScheduler)", True),
        ("model, (nn.Module, torch.optim.Optimizer)", True),
        ("path, (nn.Module, torch.optim.Optimizer)", False),
        ("7, nn.Module", False),
        ("made(), nn.Module", None),
        ("optimizer, Own", None),
    ],
)
def test_families(asked: str, answer: bool | None) -> None:
    text = f"{START}\nfound = isinstance({asked})\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    found = [a.value for a in story.execution.assignments if a.name == "found"][-1]
    assert constant(found) is answer
