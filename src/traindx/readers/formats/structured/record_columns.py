"""Records of metrics gathered into columns, their nested values under joined names."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from traindx.model.run import as_number
from traindx.readers.columns import Cells, Columns, is_key

MAX_DEPTH = 8
MAX_NAMES = 4000

# names of containers, which say nothing about what is in them
CONTAINERS = frozenset(
    {"metrics", "metric", "logs", "log", "data", "values", "scalars", "stats", "results", "history",
     "log_history", "records", "entries", "rows", "logged_metrics", "callback_metrics"}
)  # fmt: skip

# what a search writes beside each result: settings, which tell one run from the next
SETTINGS = frozenset(
    {"config", "cfg", "params", "hparams", "hyperparams", "hyperparameters", "hyper_parameters",
     "args", "arguments", "settings", "options"}
)  # fmt: skip
RUN = "run"  # the column that tells them apart

Record = Mapping[str, Any]


class RecordColumns:
    """Records, one by one, gathered into columns."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self.rows: dict[str, array[int]] = {}
        self.values: dict[str, array[float]] = {}
        self.texts: dict[str, list[str]] = {}
        self.summaries: list[str] = []
        self.first: Record | None = None

    def add(self, record: Record, place: int) -> None:
        """Add one record; what a Trainer says of the whole run is no point of it."""
        if "train_runtime" in record and ("train_loss" in record or "total_flos" in record):
            self.summaries.append(", ".join(f"{k} {v}" for k, v in list(record.items())[:12]))
            return
        row = len(self.places)
        self.places.append(place)
        self.first = self.first or record
        told = settings_in(record)
        if told is not None and RUN not in record:
            column = self.texts.setdefault(RUN, [])
            column += [""] * (row - len(column)) + [told]
        for name, value in leaves(record, "", 0):
            if told is not None and name.split("/", 1)[0].lower() in SETTINGS:
                continue
            if is_key(name) and isinstance(value, (str, int)):
                column = self.texts.setdefault(name, [])
                column += [""] * (row - len(column)) + [str(value)]
            number = value if type(value) is float else as_number(value)
            if number is None:
                continue
            if name not in self.rows:
                if len(self.rows) >= MAX_NAMES:
                    continue
                self.rows[name], self.values[name] = array("q"), array("d")
            self.rows[name].append(row)
            self.values[name].append(number)

    def columns(self) -> Columns:
        """Return the records by column."""
        numbers = [
            Cells(name, np.array(rows, dtype=np.int64), np.array(self.values[name], dtype=float))
            for name, rows in self.rows.items()
        ]
        count = len(self.places)
        texts = {n: t + [""] * (count - len(t)) for n, t in self.texts.items()}
        return Columns(numbers, np.array(self.places, dtype=np.int64), texts)


def settings_in(record: Record) -> str | None:
    """Return the settings that a record holds beside its metrics, as text."""
    for key, value in record.items():
        if key.lower() in SETTINGS and isinstance(value, Mapping):
            return ", ".join(f"{k} {v}" for k, v in list(value.items())[:12])
    return None


def leaves(record: Record, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the plain values of a record under names joined by slashes."""
    for key, value in record.items():
        name = prefix + key if prefix else key
        if type(value) is float:
            yield name, value
        elif isinstance(value, Mapping):
            if depth < MAX_DEPTH and "_type" not in value:  # W&B: an image, a histogram
                below = prefix if key.lower() in CONTAINERS else f"{name}/"
                yield from leaves(value, below, depth + 1)
        elif isinstance(value, list):
            if len(value) == 1:
                yield name, bounded(value[0])
        elif value is not None:
            yield name, bounded(value)


def bounded(value: Any) -> Any:
    """An integer may be too large for a float."""
    return math.inf if isinstance(value, int) and value.bit_length() > 1000 else value
