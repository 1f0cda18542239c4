"""The blocks of steps of a process, put together into columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx.model.run import Floats
from traindx.readers.formats.recording.typed_json import Misfit, number

MAX_ROWS = 2_000_000
COLUMNS = (
    "optimizer", "step", "loss", "lr", "clip_norm", "clip_max", "micro", "batch", "data_s",
    "forward_s", "backward_s", "optimizer_s", "total_s", "scale", "time_s", "loss_low", "loss_high",
    "nonfinite",
)  # fmt: skip
_MADE = ("line", "stride", "has_loss")  # of each row: not columns of the file


class Steps:
    """Steps by column; what is not known is NaN, but for the loss, of which `has_loss` tells."""

    def __init__(self, blocks: list[Floats]) -> None:
        empty = np.empty((len(COLUMNS) + len(_MADE), 0))
        self._rows: Floats = np.concatenate([empty, *blocks], axis=1)

    def __len__(self) -> int:
        return int(self._rows.shape[1])

    def __getitem__(self, name: str) -> Floats:
        return np.asarray(self._rows[(*COLUMNS, *_MADE).index(name)])


def block_of(record: dict[str, Any], line: int) -> Floats | None:
    """Return the rows of one record; None if it has none that make sense."""
    steps = _column(record.get("step"))
    if steps is None or not len(steps) or not np.isfinite(steps).all():
        return None
    count = len(steps)
    rows = np.full((len(COLUMNS) + len(_MADE), count), np.nan)
    for i, name in enumerate(COLUMNS):
        column = _column(record.get(name), count)
        if column is not None and len(column) == count:
            rows[i] = column
    rows[0] = np.where(np.isfinite(rows[0]), rows[0], 0.0)  # one optimizer goes without a number
    losses = record.get("loss")
    is_listed = isinstance(losses, list) and len(losses) == count
    told = [x is not None for x in losses] if isinstance(losses, list) and is_listed else False
    stride = _column(record.get("stride"), 1)
    is_stride = stride is not None and len(stride) == 1 and stride[0] >= 1
    rows[-3] = line
    rows[-2] = stride[0] if stride is not None and is_stride else 1.0
    rows[-1] = told
    return rows


def _column(values: Any, count: int = 0) -> NDArray[np.float64] | None:
    if isinstance(values, (int, float)) and not isinstance(values, bool):
        values = [values] * count
    if not isinstance(values, list):
        return None
    try:
        made = np.array(values, dtype=np.float64)  # None becomes NaN
        if made.ndim == 1:
            return made
    except (ValueError, TypeError, OverflowError):
        pass
    try:
        return np.array([number(value) for value in values])
    except Misfit:
        return None
