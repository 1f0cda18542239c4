"""Calls of old names, and their new ones."""

from __future__ import annotations

from traindx.analysis.program import project_of
from traindx.analysis.program.deprecations import Rename, renamed, uses
from traindx.examples import make_run

OLD = "torch.cuda.amp.autocast"
NEW = Rename("torch.amp.autocast", '"cuda"', "enabled")


def patch_of(text: str) -> str | None:
    (module,) = project_of(make_run(sources={"t.py": text})).modules
    return renamed(module, [(use, NEW) for use in uses(module, {OLD})])


def test_the_old_first_argument_gets_a_name() -> None:
    patch = patch_of("import torch\nwith torch.cuda.amp.autocast(True):\n    pass\n")
    assert patch is not None and '+with torch.amp.autocast("cuda", enabled=True):' in patch


def test_an_import_is_renamed() -> None:
    patch = patch_of("from torch.cuda.amp import autocast\nwith autocast():\n    pass\n")
    assert patch is not None and "+from torch.amp import autocast" in patch


def test_a_fallback_is_no_use() -> None:
    text = "import torch\ntry:\n    new()\nexcept AttributeError:\n    torch.cuda.amp.autocast()\n"
    (module,) = project_of(make_run(sources={"t.py": text})).modules
    assert not uses(module, {OLD})
