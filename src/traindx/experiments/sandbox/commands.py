"""What a command line starts: Python or something else, here or elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from traindx.errors import CannotRerun

_ELSEWHERE = frozenset(
    {"sbatch", "srun", "salloc", "qsub", "bsub", "kubectl", "docker", "podman", "singularity",
     "apptainer", "ssh", "ray", "sky", "modal", "sudo"}
)  # fmt: skip
PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_KEEPS_OUT = {"I", "E", "S"}  # isolated, without environment, without site
_NODES = re.compile(r"--?n(?:um_)?(?:nodes|machines)(?:=(.+))?")


def refuse(command: Sequence[str], cwd: Path) -> None:
    """Raise for a command that cannot be rerun on a copy at all."""
    if not command:
        raise CannotRerun("there is no command to rerun")
    name = Path(command[0]).name
    if name in _ELSEWHERE:
        raise CannotRerun(
            f"{name} runs the program elsewhere, where it cannot be watched or kept in"
        )
    at = next((i for i, word in enumerate(command) if PYTHON.fullmatch(word)), None)
    if at is not None:
        _refuse_python(command[at], command[at + 1 :], cwd)
    nodes = nodes_of(command)
    if nodes > 1:
        raise CannotRerun(f"it trains on {nodes} machines, and a rerun has one")


def _refuse_python(python: str, rest: Sequence[str], cwd: Path) -> None:
    words = iter(rest)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word.startswith(("-c", "-m")):
            return
        elif word == "-":
            raise CannotRerun("Python reads the program from standard input, which is gone")
        elif word.startswith("-"):
            is_bundle = not word.startswith(("--", "-W", "-X"))
            kept_out = _KEEPS_OUT & set(word[1:]) if is_bundle else set()
            if kept_out:
                why = "which keeps the recorder and the guard out"
                raise CannotRerun(f"{python} is started with -{min(kept_out)}, {why}")
        else:
            if not (cwd / word).exists():
                raise CannotRerun(f"{word}: no such file in {cwd}")
            return
    raise CannotRerun(f"{python} without a program asks for input on the terminal")


def nodes_of(command: Sequence[str]) -> int:
    """Return on how many machines a launcher is told to train."""
    for i, word in enumerate(command):
        match = _NODES.fullmatch(word)
        if match is not None:
            value = match[1] or (command[i + 1] if i + 1 < len(command) else "1")
            low = value.partition(":")[0]
            return int(low) if low.isdigit() else 1
    return 1
