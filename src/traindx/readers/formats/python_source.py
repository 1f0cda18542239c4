"""Training code: a Python file is kept as text, never imported and never run."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

from traindx.model.run import Run, Source
from traindx.readers.text import damage, decode, is_text, read_text
from traindx.registry import reader

MAX_BYTES = 1 << 20  # a longer file is generated
_STATEMENT = re.compile(r"^(?:import \w|from [\w.]+ import |def \w+\(|class \w+[(:]|@\w)", re.M)
_TRAINING = re.compile(r"\b(?:torch|tensorflow|keras|jax|flax|lightning|transformers|\.backward\()")


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file is Python; code that trains comes first."""
    if not head.strip() or not is_text(head):
        return 0.0
    text = decode(head)
    if path.suffix in {".py", ".pyw"}:
        return 0.95 if _TRAINING.search(text) else 0.6
    if path.suffix or not _STATEMENT.search(text):
        return 0.0 if path.suffix not in {".txt", ".log"} else 0.7 * _is_python(text)
    return 0.7 * _is_python(text)


def _is_python(text: str) -> bool:
    """Tell whether a text is a program; the end of a longer one was cut off with the head."""
    if not _STATEMENT.search(text):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user's odd escapes are not our output
            ast.parse(text[: text.rfind("\n\n") + 1] if len(text) > 60_000 else text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


@reader("python", sniff)
def read(path: Path) -> Run:
    """Keep a Python file as a source of the run."""
    text, was_cut = read_text(path, MAX_BYTES)
    said = [f"only the first {MAX_BYTES >> 20} MB were read"] if was_cut else []
    artifact, events = damage(path, "python", said)
    source = Source(str(path), text.replace("\r\n", "\n"))
    return Run(name=path.stem, sources=(source,), artifacts=(artifact,), events=events)
