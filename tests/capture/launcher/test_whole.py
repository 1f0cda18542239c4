"""The whole way: an unmodified script, recorded from inside, and its diagnosis when it crashed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = """
import ctypes
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 8)
y = (x[:, 0] > 0).long()


def crash():
    ctypes.string_at(0)


for step in range(120):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
crash()
"""


def test_a_script_that_never_steps_and_then_crashes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "traindx",
            "run",
            "--output",
            "out",
            "--",
            sys.executable,
            "train.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
        timeout=120,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGSEGV
    assert len(done.stdout.splitlines()) == 120
    assert "crashed in train.py line 13, in crash: Segmentation fault" in done.stderr
    out = tmp_path / "out"
    assert (out / "sources" / "train.py").read_text() == SCRIPT
    index = json.loads((out / "sources" / "index.json").read_text())
    assert index == {"train.py": str(tmp_path / "train.py")}
    causes = json.loads((out / "diagnosis.json").read_text())["root_causes"]
    assert "missing-optimizer-step" in {c["cause"] for c in causes}
