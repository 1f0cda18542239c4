"""What the tests of reruns share: a project in a folder, and a rerun of a script in it."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from traindx.experiments.changes import AS_IT_IS, Change, Limits, Rerun
from traindx.experiments.sandbox.workshop import Workshop

STEPS = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def steps(count):
    for _ in range(count):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
"""


def prints(*folders: Path) -> dict[str, str]:
    """Return what is in folders, file by file, with modes and links."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            is_file = path.is_file() and not path.is_symlink()
            inside = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else ""
            linked = path.readlink() if path.is_symlink() else ""
            about = path.lstat()
            found[str(path)] = f"{about.st_mode} {about.st_mtime_ns} {inside} {linked}"
    return found


def rerun_once(
    folder: Path,
    *words: str,
    change: Change = AS_IT_IS,
    time_s: float = 120.0,
    steps: int | None = None,
    python: str = sys.executable,
) -> tuple[Rerun, str]:
    """Rerun a script of a project once, and return how it went and what it printed."""
    command = [python, *words]
    with Workshop(command, folder, os.environ) as workshop:
        rerun = workshop.rerun(change, 0, Limits(time_s, steps))
        return rerun, (rerun.folder / "output.log").read_text()
