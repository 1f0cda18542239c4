"""The import rules of the design: downward only, siblings independent, torch only where it may be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import traindx
from traindx.cli.main import COMMANDS

ROOT = Path(traindx.__file__).parent

# lowest first; a module may import from its own room and from the layers below
LAYERS: tuple[tuple[str, ...], ...] = (
    ("model", "errors"),
    ("tracebacks",),
    ("analysis", "causes", "registry", "examples"),
    ("detectors",),
    ("capture", "readers", "diagnosis", "specialists", "report"),
    ("experiments",),
    ("fleet", "comparison"),
    ("api",),
    ("cli", "agent", "page", "testing", "callbacks"),
)
TOGETHER = {
    ("causes", "analysis"),  # a remedy names the line of the source that sets what it changes
    ("cli", "agent"),  # a command starts the specialist, another one the server
}
EXAMPLES_ALLOWED = ("detectors", "examples")  # what examples are built of is on no other path
TORCH_ALLOWED = (
    "capture/recorder",
    "experiments/interventions",
    "readers/formats/checkpoint",
    "demo",
)
INSIDE = ("capture/recorder", "experiments/interventions")  # they run in the user's process
SAME_CLASS_NAMES = {"TraindxCallback", "Model"}  # public in each framework; the demo's own
SAME_MODULE_NAMES = {"__init__", "reader", "lightning", "transformers"}
# two interpreters that are built alike: of shapes, and of what a program does
SAME_MODULE_NAMES |= {"calls", "expressions", "iteration", "layers", "machine", "names"}
SAME_MODULE_NAMES |= {"statements", "truth", "values"}
# what training code is about, in rooms that nobody takes for one another: causes, interventions,
# formats, the recorder
SAME_MODULE_NAMES |= {"checkpoints", "contents", "data", "events", "examples", "frameworks"}
SAME_MODULE_NAMES |= {"initialisation", "modes", "numbers", "settings", "tensors"}
MOST_ENTRIES = 24  # on the top floor, besides what Python itself asks for
# rules that still read syntax trees themselves: each is to ask the program model, and to leave here
READING_SYNTAX: set[str] = set()
HEAVY = ("torch", "numpy", "rich", "yaml", "matplotlib")

IN_TEXT = re.compile(r"(?:from|import) traindx\.(\w+)")

FILES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def layer(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


def inside(path: Path, rooms: tuple[str, ...]) -> bool:
    return str(path.relative_to(ROOT)).startswith(rooms)


def imported_rooms(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "traindx":
            rooms |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("traindx."):
            rooms.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {a.name.split(".")[1] for a in node.names if a.name.startswith("traindx.")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            rooms |= set(IN_TEXT.findall(node.value))  # a program that another process is to run
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
    is_allowed = inside(path, TORCH_ALLOWED)
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        assert is_allowed or not any(n.split(".")[0] == "torch" for n in names)


@pytest.mark.parametrize("path", sorted((ROOT / "detectors").rglob("*.py")), ids=lambda p: p.name)
def test_a_detector_imports_no_other_detector(path: Path) -> None:
    assert "detectors" not in imported_rooms(path)


@pytest.mark.parametrize("path", sorted((ROOT / "detectors").rglob("*.py")), ids=lambda p: p.name)
def test_a_detector_asks_what_a_program_does(path: Path) -> None:
    """How a program is written is for the rooms under `analysis` to know."""
    imported = {
        name
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    is_waiting = str(path.relative_to(ROOT / "detectors")) in READING_SYNTAX
    assert ("ast" in imported) == is_waiting, "ask the program model; then leave READING_SYNTAX"


def test_rules_that_wait_exist() -> None:
    assert all((ROOT / "detectors" / name).is_file() for name in READING_SYNTAX)


@pytest.mark.parametrize("path", sorted((ROOT / "detectors").rglob("*.py")), ids=lambda p: p.name)
def test_a_detector_reads_no_source_text(path: Path) -> None:
    """It neither goes through the sources of a run nor through the lines that a frame shows."""
    for node in ast.walk(ast.parse(path.read_text())):
        over = node.iter if isinstance(node, (ast.For, ast.comprehension)) else None
        is_source = isinstance(over, ast.Attribute) and over.attr == "sources"
        assert not is_source, f"line {getattr(over, 'lineno', 0)} goes through source text"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_pattern = node.func.attr in ("search", "match", "fullmatch", "findall", "finditer")
            given = [n.attr for a in node.args for n in ast.walk(a) if isinstance(n, ast.Attribute)]
            is_text = bool({"code", "lines", "unparse"} & set(given))
            is_waiting = str(path.relative_to(ROOT / "detectors")) in READING_SYNTAX
            assert is_waiting or not (is_pattern and is_text), f"line {node.lineno} matches source"


@pytest.mark.parametrize(
    "path",
    [p for p in sorted((ROOT / "detectors").rglob("*.py")) if 'needs=("failure' in p.read_text()],
    ids=lambda p: p.name,
)
def test_a_rule_about_failures_has_no_patterns_of_its_own(path: Path) -> None:
    """Wordings of errors are rows of the tables in `analysis/errors`."""
    imports = (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Import))
    assert "re" not in {a.name for node in imports for a in node.names}


@pytest.mark.parametrize("path", [p for p in FILES if inside(p, INSIDE)], ids=lambda p: p.name)
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


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_detectors_need_examples(path: Path) -> None:
    assert room(path) in EXAMPLES_ALLOWED or "examples" not in imported_rooms(path)


def test_commands_are_independent_of_each_other() -> None:
    commands = {command.__name__ for command in COMMANDS}
    for name in commands:
        tree = ast.parse((ROOT / "cli" / f"{name.rsplit('.', 1)[-1]}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found = {f"{node.module}.{alias.name}" for alias in node.names}
                assert not ({str(node.module)} | found) & (commands - {name}), name


def test_starting_up_imports_nothing_heavy() -> None:
    code = (
        "import sys; import traindx, traindx.api; from traindx.cli.main import build_parser; build_parser();"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_module_has_a_name_that_says_nothing() -> None:
    banned = {"utils", "util", "common", "base", "core", "manager", "constants", "helpers", "misc"}
    assert not {p.stem for p in FILES} & banned


def test_the_top_floor_is_small() -> None:
    asked_for = {"__init__.py", "__main__.py", "__pycache__", "py.typed"}
    entries = {p.name for p in ROOT.iterdir()} - asked_for
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_a_class_name_occurs_once() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    doubles = {name: found for name, found in homes.items() if len(found) > 1}
    assert set(doubles) <= SAME_CLASS_NAMES, doubles


def test_a_module_name_occurs_once() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        if room(path) not in ("cli", "demo"):  # a command's file is named after the command
            homes.setdefault(path.stem, []).append(str(path.relative_to(ROOT)))
    doubles = {stem: found for stem, found in homes.items() if len(found) > 1}
    assert set(doubles) <= SAME_MODULE_NAMES, doubles


def test_public_names_exist() -> None:
    for name in traindx.__all__:
        assert getattr(traindx, name) is not None
