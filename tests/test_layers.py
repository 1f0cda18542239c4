"""The import rules of the design: downward only, siblings independent, torch only where it may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import traindx

ROOT = Path(traindx.__file__).parent

# lowest first; a module may import from its own group of one and from the layers below
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "recording"),
    ("model", "names"),
    ("evidence", "assembly", "examples", "failures", "patience"),
    ("registry", "stats", "causes", "source", "specialists", "outcomes", "checklist"),
    ("runtime",),
    ("detectors", "gathering"),
    (
        "recorder",
        "interventions",
        "ride",
        "readers",
        "artifacts",
        "diagnosis",
        "routing",
        "report",
        "catalogue",
    ),
    ("notebook", "experiments"),
    ("api", "fleet", "skills"),
    ("watching",),
    ("callbacks",),
    ("agent", "testing"),
    ("cli",),
)
TOGETHER = {("artifacts", "readers")}
TORCH_ALLOWED = ("recorder", "interventions", "readers/checkpoint", "demo")
INSIDE = ("recorder", "interventions")  # they run in the user's process
HEAVY = ("torch", "numpy", "rich", "yaml", "matplotlib")

FILES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def layer(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


def imported_rooms(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "traindx":
            rooms |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("traindx."):
            rooms.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {a.name.split(".")[1] for a in node.names if a.name.startswith("traindx.")}
    return {r for r in rooms if not r.startswith("_")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downward(path: Path) -> None:
    own = room(path)
    if own in ("__init__", "__main__", "demo"):
        return
    for other in imported_rooms(path) - {own}:
        below = layer(other) < layer(own)
        assert below or (own, other) in TOGETHER, f"{own} must not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_torch_is_imported_only_where_it_may_be(path: Path) -> None:
    inside = str(path.relative_to(ROOT)).startswith(TORCH_ALLOWED)
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        assert inside or not any(n.split(".")[0] == "torch" for n in names)


@pytest.mark.parametrize("path", sorted((ROOT / "detectors").rglob("*.py")), ids=lambda p: p.name)
def test_a_detector_imports_no_other_detector(path: Path) -> None:
    assert "detectors" not in imported_rooms(path)


@pytest.mark.parametrize("path", [p for p in FILES if room(p) in INSIDE], ids=lambda p: p.name)
def test_what_runs_inside_needs_nothing_but_torch(path: Path) -> None:
    """It runs in the user's environment, where neither traindx nor numpy need be installed."""
    for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 9))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        tops = {n.split(".")[0] for n in names}
        assert tops <= {"torch", "traindx_recorder", *sys.stdlib_module_names}, tops


def test_starting_up_imports_nothing_heavy() -> None:
    code = (
        "import sys; import traindx; from traindx.cli.main import build_parser; build_parser();"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_module_has_a_name_that_says_nothing() -> None:
    banned = {"utils", "util", "common", "base", "core", "manager", "constants", "helpers", "misc"}
    assert not {p.stem for p in FILES} & banned


def test_public_names_exist() -> None:
    for name in traindx.__all__:
        assert getattr(traindx, name) is not None
