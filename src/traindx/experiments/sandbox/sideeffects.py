"""What a rerun may do beyond its copy, read from the source and said before anything runs."""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx.experiments.interventions.guard.mirror import is_below
from traindx.experiments.sandbox.commands import PYTHON, SHELLS
from traindx.experiments.sandbox.project_folders import scripts_of

MOST_FILES = 300
MOST_BYTES = 1 << 20
MOST_NAMED = 3

_NETWORK = frozenset(
    {"requests", "httpx", "aiohttp", "boto3", "botocore", "s3fs", "gcsfs", "paramiko", "smtplib",
     "ftplib", "telnetlib", "slack_sdk", "telegram", "telebot", "discord", "twilio", "pymongo",
     "redis", "psycopg2", "psycopg", "pymysql", "kafka", "openai", "anthropic", "azure",
     "websocket", "websockets", "urllib3", "knockknock", "notifiers"}
)  # fmt: skip
_NETWORK_MODULES = ("urllib.request", "http.client", "google.cloud", "xmlrpc.client")
_TRACKERS = {
    "comet_ml": "an Experiment that it makes itself still reports to Comet",
    "neptune": "a run that it opens with a mode of its own still reports to Neptune",
    "clearml": "a task that it makes online still reports to ClearML",
    "swanlab": "a run with a mode of its own still reports to SwanLab",
    "dvc": "dvc may change its cache",
    "polyaxon": "Polyaxon is reported to",
    "sagemaker": "SageMaker is reported to",
}
_STARTS = re.compile(
    r"subprocess\.(?:run|call|check_call|check_output|Popen|getoutput)|os\.(?:system|popen|spawn\w+"
    r"|exec\w+|posix_spawnp?)|pexpect\.\w+|sh\.\w+"
)
_UPLOADS = frozenset(
    {"push_to_hub", "upload_file", "upload_folder", "create_repo", "upload_large_folder"}
)
_REMOTE = re.compile(r"(?:s3|gs|gcs|hdfs|abfss?|wasbs?|az|sftp|ftp)://[\w.-]+")
_HARMLESS = ("/dev", "/proc", "/sys", "/usr", "/bin", "/lib", "/etc", "/opt")
_ABSOLUTE = re.compile(r"/(?:[\w.@+-]+/)+[\w.@+%{}-]*")


@dataclass(frozen=True, slots=True)
class Sight:
    """Something in the source that reaches beyond the copy."""

    kind: str
    what: str
    file: Path
    line: int


def warnings(command: Sequence[str], cwd: Path, roots: Sequence[Path]) -> tuple[str, ...]:
    """Return a sentence for each side effect that cannot be ruled out."""
    said = list(_about_command(command, roots))
    seen = [s for path, tree in _reached(command, cwd, roots) for s in _look(path, tree, roots)]
    kinds = dict.fromkeys(s.kind for s in seen)
    said += [_SENTENCES[kind](_named([s for s in seen if s.kind == kind], cwd)) for kind in kinds]
    return tuple(dict.fromkeys(said))


_SENTENCES = {
    "network": lambda at: f"network calls are made for real: {at}",
    "upload": lambda at: f"uploads to a hub are made for real: {at}",
    "remote": lambda at: f"what is written to remote storage is real: {at}",
    "program": lambda at: f"other programs are started, which the guard reaches in part: {at}",
    "path": lambda at: (
        f"paths outside of the project are named: {at}; what Python writes there lands in the copy,"
        " a library that writes below Python may not be held back"
    ),
    "tracker": lambda at: f"a tracker cannot be kept offline for certain: {at}",
    "unread": lambda at: f"source that does not parse was not checked for side effects: {at}",
}


def _named(seen: list[Sight], cwd: Path) -> str:
    once = list({s.what: s for s in seen}.values())
    shown = [f"{s.what} ({_near(s.file, cwd)} line {s.line})" for s in once[:MOST_NAMED]]
    more = len(once) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _near(path: Path, cwd: Path) -> str:
    relative = os.path.relpath(path, cwd.resolve())
    return str(path) if relative.startswith("..") else relative


def _about_command(command: Sequence[str], roots: Sequence[Path]) -> Iterator[str]:
    name = Path(command[0]).name
    scripts = [w for w in command if w.endswith((".sh", ".bash", ".zsh"))]
    if name in SHELLS or scripts:
        what = scripts[0] if scripts else name
        yield (
            f"{what} is run by a shell: only its Python is guarded, so what the shell itself "
            "writes to absolute paths is real"
        )
    elif not PYTHON.fullmatch(command[0]) and not _is_python_script(command[0]):
        yield f"{name} is not Python: what it writes itself is not held back"
    for word in command[1:]:
        value = word.partition("=")[2] or word
        is_outside = not any(is_below(value, str(r)) for r in roots)
        if value.startswith(os.sep) and is_outside and not value.startswith(_HARMLESS):
            yield f"{value} is outside of the project; what Python writes there lands in the copy"
        elif _REMOTE.match(value):
            yield f"{value} is remote storage; what is written there is real"


def _is_python_script(name: str) -> bool:
    """torchrun, accelerate and their like are small Python programs."""
    found = shutil.which(name)
    try:
        with open(found or name, "rb") as file:  # noqa: PTH123
            return b"python" in file.read(128).partition(b"\n")[0]
    except OSError:
        return False


# the source


def _reached(
    command: Sequence[str], cwd: Path, roots: Sequence[Path]
) -> Iterator[tuple[Path, ast.Module | None]]:
    """Yield the files of the project that the command may import, parsed; none is executed."""
    scripts = [s for s in scripts_of(command, cwd) if s.suffix == ".py"]
    homes = [*(s.parent for s in scripts), cwd.resolve(), *roots, *(r / "src" for r in roots)]
    modules = [command[i + 1] for i, w in enumerate(command[:-1]) if w == "-m"]
    waiting = deque([*scripts, *(f for m in modules for f in _files(m, homes))])
    seen: set[Path] = set()
    while waiting and len(seen) < MOST_FILES:
        path = waiting.popleft()
        if path in seen:
            continue
        seen.add(path)
        tree = _parse(path)
        yield path, tree
        for name in _imports(tree, path) if tree is not None else ():
            waiting.extend(_files(name, [path.parent, *homes]))


def _parse(path: Path) -> ast.Module | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{a.name}" if node.module else a.name for a in node.names)


def _files(name: str, homes: Sequence[Path]) -> list[Path]:
    relative = Path(*name.split(".")) if name else Path()
    for home in homes:
        for candidate in (home / relative.with_suffix(".py") if name else home, home / relative):
            if candidate.is_file():
                return [candidate.resolve()]
            starts = [candidate / "__init__.py", candidate / "__main__.py"]
            if name and candidate.is_dir() and (found := [s for s in starts if s.is_file()]):
                return [s.resolve() for s in found]
    return []


def _look(path: Path, tree: ast.Module | None, roots: Sequence[Path]) -> Iterator[Sight]:
    if tree is None:
        yield Sight("unread", path.name, path, 1)
        return
    documented = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            for name in names:
                yield from _about_import(name or "", path, node.lineno)
        elif isinstance(node, ast.Call):
            yield from _about_call(node, path)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = "" if id(node) in documented else node.value
            yield from _about_text(said, path, node.lineno, roots)


def _docstrings(tree: ast.Module) -> set[int]:
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _about_import(name: str, path: Path, line: int) -> Iterator[Sight]:
    top = name.partition(".")[0]
    if top in _NETWORK or name.startswith(_NETWORK_MODULES):
        yield Sight("network", top if top in _NETWORK else name, path, line)
    elif top in _TRACKERS:
        yield Sight("tracker", f"{top}, for {_TRACKERS[top]}", path, line)


def _about_call(node: ast.Call, path: Path) -> Iterator[Sight]:
    called = ast.unparse(node.func) if isinstance(node.func, (ast.Attribute, ast.Name)) else ""
    if _STARTS.fullmatch(called):
        yield Sight("program", called, path, node.lineno)
    if called.rpartition(".")[2] in _UPLOADS:
        yield Sight("upload", called, path, node.lineno)
    for keyword in node.keywords:
        is_set = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        if keyword.arg == "push_to_hub" and is_set:
            yield Sight("upload", "push_to_hub=True", path, node.lineno)


def _about_text(text: str, path: Path, line: int, roots: Sequence[Path]) -> Iterator[Sight]:
    if _REMOTE.match(text):
        yield Sight("remote", text[:80], path, line)
        return
    is_outside = not any(is_below(text, str(root)) for root in roots)
    if is_outside and _ABSOLUTE.fullmatch(text) and not text.startswith(_HARMLESS):
        yield Sight("path", text[:80], path, line)
