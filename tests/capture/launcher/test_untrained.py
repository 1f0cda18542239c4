"""A program that reads data and never learns: its source is kept, and says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from traindx.api import diagnose_run

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(4, 2)
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
{lines}
"""
LEARNS_NOTHING = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=8, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        optimizer.step()
"""
EVALUATES = """
model.eval()
with torch.no_grad():
    right = sum((model(x).argmax(1) == y).sum() for x, y in DataLoader(data, batch_size=8))
print(right / len(data))
"""
NEVER_CALLED = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=8, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        if epoch > 9:
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("lines", "causes"),
    [(LEARNS_NOTHING, ["missing-backward"]), (EVALUATES, []), (NEVER_CALLED, None)],
)
def test_a_program_without_backward(lines: str, causes: list[str] | None, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.format(lines=lines), encoding="utf-8")
    command = [sys.executable, "-m", "traindx", "run", "--quiet", "--output", "recording", "--"]
    subprocess.run(
        [*command, sys.executable, "train.py"], cwd=tmp_path, check=True, capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    run, diagnosis = diagnose_run(tmp_path / "recording")
    assert [Path(s.path).name for s in run.sources] == ["train.py"]
    if causes is not None:
        assert [h.cause for h in diagnosis.root_causes] == causes
