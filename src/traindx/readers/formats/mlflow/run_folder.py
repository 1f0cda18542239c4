"""A run in MLflow's file store: a folder with `meta.yaml`, `metrics/`, `params/` and `tags/`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from traindx.model.merging import resolve
from traindx.model.metric_names import canonical
from traindx.model.run import Artifact, Config, Event, Origin, Run, Series, Setting
from traindx.readers.formats.settings import literal, read_settings
from traindx.readers.text import LineBlocks, damage, decode, is_text
from traindx.registry import reader

MAX_FILES = 2000
MAX_DEPTH = 8
MAX_VALUE = 8000  # bytes of a parameter; MLflow allows no more
MAX_META = 1 << 16
_POINT = re.compile(r"-?\d{1,19} +\S{1,40}(?: +-?\d{1,19})?(?: .*)?")
_META = re.compile(rb"^run_(?:id|uuid):", re.M)
STATUS = {"4": "FAILED", "5": "KILLED", "1": "RUNNING", "2": "SCHEDULED"}


def sniff(path: Path, head: bytes) -> float:
    """Recognise the description of a run, or the file of one of its metrics."""
    if path.name == "meta.yaml":
        return 0.97 if _META.search(head) and b"artifact_uri" in head else 0.0
    if "metrics" not in path.parts or not is_text(head):
        return 0.0
    lines = decode(head[:4000]).split("\n")[:20]
    whole = [line for line in lines[: -1 if len(lines) > 1 else None] if line]
    return 0.9 if whole and all(_POINT.fullmatch(line) for line in whole) else 0.0


@reader("mlflow", sniff)
def read(path: Path) -> Run:
    """Read a whole run from its description, or one metric from its file."""
    if path.name != "meta.yaml":
        series, artifact = _metric(path, _name_in(path))
        events = damage(path, "mlflow", artifact.warnings)[1]
        found = resolve([series]) if len(series) else {}
        return Run(name=path.stem, series=found, artifacts=(artifact,), events=events)
    return _read_run(path)


def _name_in(path: Path) -> str:
    parts = path.parts
    start = len(parts) - 1 - parts[::-1].index("metrics") if "metrics" in parts else len(parts) - 2
    return "/".join(parts[start + 1 :])


def _read_run(path: Path) -> Run:
    with path.open("rb") as file:
        about = read_settings(decode(file.read(MAX_META)), ".yaml")[0]
    meta = {key: str(value) for key, value, _ in about}
    told = [_metric(file, name) for file, name in _files(path.parent / "metrics")]
    settings = tuple(
        Setting(name.replace("/", "."), literal(value), str(file), "line 1")
        for file, name in _files(path.parent / "params")
        if (value := _small(file))
    )
    warnings = [] if told else ["the run has no metrics"]
    artifact, events = damage(path, "mlflow", warnings)
    status = STATUS.get(meta.get("status", ""), "")
    return Run(
        name=meta.get("run_name") or meta.get("run_id") or path.parent.name,
        series=resolve([series for series, _ in told]),
        config=Config(settings),
        events=(*events, *ending(status, str(path))),
        artifacts=(artifact, *(a for _, a in told)),
    )


def ending(status: str, artifact: str) -> tuple[Event, ...]:
    """Say how a run ended, where it did not end well."""
    if status == "KILLED":
        return (Event("killed", "MLflow recorded the run as killed", artifact, "status"),)
    if status == "FAILED":
        return (Event("exit", "MLflow recorded the run as failed", artifact, "status"),)
    if status == "RUNNING":
        text = "MLflow has no end of the run: it was killed, or still runs"
        return (Event("exit", text, artifact, "status"),)
    return ()


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files below a folder with the names that their paths give them."""
    count = 0
    for place, inside, names in os.walk(folder):
        inside.sort()
        if len(Path(place).relative_to(folder).parts) >= MAX_DEPTH:
            inside.clear()
        for name in sorted(names):
            file = Path(place, name)
            if count >= MAX_FILES or not file.is_file():
                continue
            count += 1
            yield file, file.relative_to(folder).as_posix()


def _small(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return decode(file.read(MAX_VALUE)).strip()
    except OSError:
        return ""


def _metric(path: Path, name: str) -> tuple[Series, Artifact]:
    """Read the lines `timestamp value step` of a metric."""
    steps: list[float] = []
    values: list[float] = []
    places: list[int] = []
    damaged = 0
    blocks = LineBlocks(path)
    for first, lines in blocks:
        for place, line in enumerate(lines, first):
            point = _point(line)
            if point is not None:
                values.append(point[0])
                steps.append(point[1])
                places.append(place)
            else:
                damaged += bool(line.strip())
    said = blocks.warnings()
    if damaged:
        said.append(f"{damaged} lines are no points")
    is_counted = len(set(steps)) > 1 or len(steps) < 2  # without a step, MLflow writes 0
    series = Series(
        canonical(name),
        np.array(values, dtype=np.float64),
        np.array(steps if is_counted else range(len(steps)), dtype=np.float64),
        Origin(str(path), name),
        "step" if is_counted else "point",
        places=np.array(places, dtype=np.int64),
    )
    return series, Artifact(str(path), "mlflow", tuple(said))


def _point(line: str) -> tuple[float, float] | None:
    if _POINT.fullmatch(line) is None:
        return None
    parts = line.split()
    try:
        return float(parts[1]), float(parts[2]) if len(parts) > 2 else 0.0
    except (ValueError, OverflowError):
        return None
