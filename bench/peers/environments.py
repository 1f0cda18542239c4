"""Virtual environments for the peers, made once below the cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).parent.parent / "cache" / "peers"
CONSTRAINTS = Path(__file__).parent.parent.parent / "constraints.txt"
PATIENCE_S = 1200
PROGRAM = "bench/overhead_programs/training.py"
FOLDER = "FOLDER"  # stands for the folder of one measurement
TORCH = "torch==2.13.0"  # the same for everybody, and the CPU build


@dataclass(frozen=True, slots=True)
class Peer:
    """A package with a recorder or hooks; its module in this folder puts them in place."""

    name: str
    module: str
    packages: tuple[str, ...]
    bare: tuple[str, ...] = ()  # installed without what they ask for
    launcher: tuple[str, ...] = ()  # a command of theirs that runs the program
    needs_torch: bool = True


PEERS = (
    Peer("torcheck", "torcheck_way", ("numpy", "setuptools<81"), ("torcheck",)),
    Peer(
        "TraceML",
        "traceml_way",
        ("traceml-ai",),
        launcher=("-m", "traceml_ai.launcher.cli", "run", PROGRAM, "--logs-dir", FOLDER, "--args"),
    ),
    Peer("torch-audit", "torch_audit_way", ("torch-audit",)),
    Peer(
        "TrainCheck",
        "traincheck_way",
        ("traincheck",),
        launcher=("-m", "bench.peers.traincheck_way"),
    ),
    Peer("torchmortem", "torchmortem_way", ("torchmortem",)),
    Peer(
        "smdebug",
        "smdebug_way",
        ("smdebug", "requests", "pandas<3", "psutil", "numpy<2", "setuptools==80.9.0"),
    ),
    Peer("Cockpit, economy", "cockpit_way", ("cockpit-for-pytorch", "setuptools<81")),
)


def python_of(peer: Peer) -> tuple[Path | None, str]:
    """Return the interpreter of a peer's environment, made if need be, or why there is none."""
    home = CACHE / peer.module.removesuffix("_way")
    python = home / "bin" / "python"
    if (home / "installed").exists():
        return python, ""
    shutil.rmtree(home, ignore_errors=True)
    if _fails([sys.executable, "-m", "venv", str(home)]):
        return None, "no virtual environment"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "-c", str(CONSTRAINTS)]
    wanted = (TORCH, *peer.packages) if peer.needs_torch else peer.packages
    for packages, options in ((wanted, []), (peer.bare, ["--no-deps"])):
        why = _fails([*pip, *options, *packages]) if packages else ""
        if why:
            return None, why
    (home / "installed").touch()
    return python, ""


def also_installed(python: Path, packages: tuple[str, ...]) -> str:
    """Add what the programs under test import to an environment; return why that failed, if so."""
    mark = python.parent.parent / "programs"
    if mark.exists():
        return ""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "-c", str(CONSTRAINTS)]
    why = _fails([*pip, *packages])
    if not why:
        mark.touch()
    return why


def version_of(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    ran = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def _fails(command: list[str]) -> str:
    """Run a command; return the last line it complained with, or nothing."""
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:200]
    lines = ran.stderr.strip().splitlines() or ["it failed without a word"]
    return lines[-1][:200] if ran.returncode else ""
