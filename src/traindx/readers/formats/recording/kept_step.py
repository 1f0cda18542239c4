"""What was kept of a step that went wrong: the tensors of its batch, and notes on them."""

from __future__ import annotations

import json
from pathlib import Path

from traindx.errors import TraindxError
from traindx.model.recording import Recording
from traindx.model.run import Tensor
from traindx.readers.formats.checkpoint import safetensors_file
from traindx.readers.formats.recording.recording_files import INCIDENTS

MAX_INCIDENTS = 50
MAX_INDEX = 4 << 20
MAX_NOTES = 20
BATCH = "batch.safetensors"
ABOUT = "incident.json"

Kept = tuple[tuple[Tensor, ...], tuple[str, ...]]


def kept_batches(recording: Recording) -> dict[str, Kept]:
    """Return the tensors that were kept and notes on them, by the folder that a record names."""
    found: dict[str, Kept] = {}
    for process in recording.processes:
        folder = Path(process.path).parent
        names = [c.kept for c in process.caught] + [n.kept for n in process.nonfinite]
        for name in names:
            if name and name not in found and len(found) < MAX_INCIDENTS:
                found[name] = _read(folder, name)
    return found


def _read(folder: Path, kept: str) -> Kept:
    try:
        place = (folder / kept).resolve()
        if not place.is_relative_to((folder / INCIDENTS).resolve()):  # a record is not trusted
            return (), ("it does not lie in this recording",)
        architecture = safetensors_file.read(place / BATCH).architecture
    except (OSError, ValueError):
        return (), ("the batch that was kept is gone",)
    except TraindxError as error:
        return (), (str(error),)
    tensors = architecture.tensors if architecture is not None else ()
    return tensors, _notes(place / ABOUT)


def _notes(path: Path) -> tuple[str, ...]:
    try:
        with path.open("rb") as file:
            about = json.loads(file.read(MAX_INDEX))
        notes = about["notes"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return ()
    listed = notes if isinstance(notes, list) else []
    return tuple(note[:500] for note in listed[:MAX_NOTES] if isinstance(note, str))
