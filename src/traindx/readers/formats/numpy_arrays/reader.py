"""The reader of NumPy arrays: plain numbers only, for an array of objects is a pickle."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx.errors import UnreadableArtifact
from traindx.model.merging import resolve
from traindx.model.metric_names import canonical, is_epoch, is_measured, is_step, words
from traindx.model.run import Floats, Run
from traindx.readers.columns import Cells, Columns, title, to_series
from traindx.readers.text import damage
from traindx.registry import reader

MAX_POINTS = 5_000_000  # of an array; a longer one holds data
MAX_MEMBERS = 200
LONG_NAME = 4  # words; such a name says more than the metric: the run, the date
_MAGIC, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
# what the evaluation callback of Stable-Baselines3 writes
_EVALUATIONS = {"results": "eval/mean_reward", "ep_lengths": "eval/mean_ep_length"}
_HINT = "an array of numbers that is named after its metric, such as train_loss.npy"


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file holds arrays of metrics."""
    if head.startswith(_MAGIC):
        return 0.9 if is_measured(canonical(title(path))) else 0.11
    if not (head.startswith(_ZIP) and path.suffix.lower() == ".npz"):
        return 0.0
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n.removesuffix(".npy") for n in archive.namelist()[:MAX_MEMBERS]]
    except (zipfile.BadZipFile, OSError):
        return 0.11
    is_metrics = any(is_measured(canonical(n)) for n in names)
    return 0.9 if is_metrics or set(_EVALUATIONS) <= set(names) else 0.11


@reader("numpy", sniff)
def read(path: Path) -> Run:
    """Read every array that is one number per step, epoch or evaluation."""
    arrays = _arrays(path)
    groups: dict[int, list[Cells]] = {}
    for name, values in arrays.items():
        rows = np.arange(len(values), dtype=np.int64)
        groups.setdefault(len(values), []).append(Cells(name, rows, values))
    series = []
    for count, cells in groups.items():
        places = np.arange(1, count + 1, dtype=np.int64)
        series += to_series(Columns(cells, places), path, "entry")
    if not series:
        raise UnreadableArtifact(str(path), "its arrays are not of a metric", _HINT)
    artifact, events = damage(path, "numpy", [])
    return Run(name=path.stem, series=resolve(series), artifacts=(artifact,), events=events)


def _arrays(path: Path) -> dict[str, Floats]:
    """Return the arrays of one value per row whose name says what they are."""
    found: dict[str, Floats] = {}
    try:
        with path.open("rb") as file:
            is_single = file.read(len(_MAGIC)) == _MAGIC
        if is_single:
            members: dict[str, Any] = {_own_name(path): _load(path)}
        else:
            members = _members(path)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        why = f"it holds no plain array of numbers: {error}"
        raise UnreadableArtifact(str(path), why, _HINT) from error
    is_evaluation = set(_EVALUATIONS) & set(members) and "timesteps" in members
    for name, array in members.items():
        values = _per_row(array)
        told = _EVALUATIONS.get(name, name) if is_evaluation else name
        is_known = is_measured(canonical(told)) or is_step(told) or is_epoch(told)
        if values is not None and (is_known or told in _EVALUATIONS.values()):
            found[told] = values
    return found


def _members(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        told = archive.infolist()[:MAX_MEMBERS]
        small = [m.filename for m in told if m.file_size <= 8 * MAX_POINTS + 4096]
        members = {}
        for name in small:
            if name.endswith(".npy"):
                with archive.open(name) as file:
                    members[name.removesuffix(".npy")] = np.lib.format.read_array(
                        file, allow_pickle=False
                    )
    return members


def _load(path: Path) -> NDArray[Any]:
    """Map an array, so that one of many gigabytes costs nothing before it is refused."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _own_name(path: Path) -> str:
    name = title(path)
    if len(words(name)) > LONG_NAME:
        return "/".join(reversed(canonical(name).split("/")[:2]))
    return name


def _per_row(array: NDArray[Any]) -> Floats | None:
    """Return one number per row: a column as it is, several runs of an evaluation as their mean."""
    if array.dtype.kind not in "fiu" or not 0 < array.size <= MAX_POINTS or array.ndim > 2:
        return None
    values = np.array(array, dtype=np.float64)
    if values.ndim == 2:
        values = values.mean(axis=1) if values.shape[0] > 1 else values[0]
    return values if values.ndim == 1 else None
