"""The reader of Jupyter notebooks."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from pathlib import Path

from traindx.errors import UnreadableArtifact
from traindx.model.run import Artifact, Event, Run, Source
from traindx.readers.formats.notebook.cells import Cell, code_cells, printed, program
from traindx.readers.json_text import parse
from traindx.readers.spooled import Spool
from traindx.readers.text import decode, is_text, read_text
from traindx.registry import reader

MAX_BYTES = 128 << 20
_MARKS = re.compile(r'"(?:cells|worksheets|nbformat|cell_type)"\s*:')
_TRAINING = re.compile(r"\b(?:torch|tensorflow|keras|jax|flax|lightning|transformers|fastai)\b")


def sniff(path: Path, head: bytes) -> float:
    """Recognise JSON with cells in it; a notebook that trains comes first."""
    if head.lstrip()[:1] != b"{" or not is_text(head):
        return 0.0
    text = decode(head)
    marks = set(_MARKS.findall(text))
    if '"cell_type"' not in {m.rstrip(": \t") for m in marks} or len(marks) < 2:
        return 0.6 if path.suffix == ".ipynb" and marks else 0.0
    return 0.98 if _TRAINING.search(text) else 0.7


@reader("notebook", sniff)
def read(path: Path) -> Run:
    """Read code cells as source and outputs as console text."""
    text, was_cut = read_text(path, MAX_BYTES)
    warnings = [f"only the first {MAX_BYTES >> 20} MB were read"] if was_cut else []
    document, said = parse(text, path)
    if not isinstance(document, dict):
        raise UnreadableArtifact(str(path), "it is no notebook", "a file *.ipynb")
    cells = list(code_cells(document))
    warnings += said
    if not cells:
        warnings.append("it has no code cells")
    with Spool() as spool:
        places = _Places(spool)
        for cell in cells:
            places.write(cell)
        run = spool.read(path, "cell", places.where, places.cell)
    sources = (Source(str(path), program(cells)),) if cells else ()
    events = tuple(Event("warning", t, str(path)) for t in warnings)
    return replace(
        run,
        name=path.stem,
        sources=sources,
        events=(*events, *run.events),
        artifacts=(Artifact(str(path), "notebook", tuple(warnings)),),
    )


class _Places:
    """Which line of the printed text is which line of which cell's output."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self._starts: list[int] = []
        self._cells: list[int] = []

    def write(self, cell: Cell) -> None:
        self._starts.append(self.spool.lines + 1)
        self._cells.append(cell.number)
        for output in cell.outputs:
            text = printed(output)
            if text.strip():
                self.spool.write(text if text.endswith("\n") else f"{text}\n")

    def cell(self, line: int) -> int:
        at = bisect_right(self._starts, line) - 1
        return self._cells[at] if 0 <= at < len(self._cells) else 0

    def where(self, line: int) -> str:
        at = bisect_right(self._starts, line) - 1
        if not 0 <= at < len(self._cells):
            return f"output line {line}"
        return f"cell {self._cells[at]}, output line {line - self._starts[at] + 1}"
