"""Every patch of a static detector applies with git, and the fault is gone afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from traindx.examples import make_run
from traindx.registry import Detector, detectors

STATIC = [d for d in detectors().items if d.needs == ("source",)]
PATCHED = [
    (d, label)
    for d in STATIC
    for label, run in sys.modules[d.check.__module__].FIRES.items()
    if any(f.patch for f in d.check(run))
]

NO_STEP = """
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
"""


@pytest.mark.parametrize("pair", PATCHED, ids=lambda p: f"{p[0].name}: {p[1]}")
def test_the_patch_removes_the_fault(pair: tuple[Detector, str], tmp_path: Path) -> None:
    detector, label = pair
    run = sys.modules[detector.check.__module__].FIRES[label]
    found = list(detector.check(run))
    patched = [f for f in found if f.patch]
    for source in run.sources:
        (tmp_path / source.path).write_text(source.text)
    patch = str(patched[0].patch)
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    after = {s.path: (tmp_path / s.path).read_text() for s in run.sources}
    assert len(list(detector.check(make_run(sources=after)))) < len(found)


def test_many_detectors_carry_patches() -> None:
    assert len({d.name for d, _ in PATCHED}) >= 15


HOSTILE = (
    "evil\n+++ b/other.py\n",
    "evil\r",
    "tab\there",
    'quo"te',
    "back\\slash",
    "\u202egnp",
    "\x7f",
)


@pytest.mark.parametrize("folder", HOSTILE, ids=ascii)
def test_a_patch_changes_no_file_but_its_own(folder: str, tmp_path: Path) -> None:
    run = make_run(sources={f"{folder}/train.py": NO_STEP, "sound.py": "import torch\n"})
    for source in run.sources:
        (tmp_path / source.path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / source.path).write_text(source.text)
    found = [f for d in STATIC for f in d.check(run)]
    assert found
    for patch in filter(None, (f.patch for f in found)):
        subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    files = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert files == {s.path for s in run.sources}
