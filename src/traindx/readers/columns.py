"""Columns of numbers to series: which one counts steps, which ones are metrics, and of what.

Tables and JSON records say the same thing in two ways. This is what they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx.model.metric_names import (
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    PHASES,
    canonical,
    is_epoch,
    is_measured,
    is_step,
    kind_of,
    phase_of,
    words,
)
from traindx.model.run import Floats, Ints, Origin, Series
from traindx.model.step_counters import unwrap

MAX_GROUPS = 50  # more seeds, folds or tags than this are values, not names

TAGS = frozenset(
    {"metric", "tag", "name", "key", "variable", "scalar", "metric_name", "series", "measure"}
)
VALUES = frozenset({"value", "values", "y", "scalar_value", "metric_value"})
SPLITS = frozenset(
    {"phase", "split", "mode", "stage", "set", "subset", "dataset", "partition", "data"}
)
RUNS = frozenset(
    {"run", "run_id", "run_name", "seed", "fold", "trial", "experiment", "exp", "exp_name", "job"}
)
# what is set and never measured; a dict of these is a configuration
SETTINGS = frozenset(
    {"batch_size", "bs", "hidden", "hidden_dim", "hidden_size", "dropout", "weight_decay", "wd",
     "momentum", "num_layers", "n_layers", "layers", "seed", "epochs", "num_epochs", "max_epochs",
     "gamma", "warmup_steps", "units", "embed_dim", "embedding_dim", "patience", "n_estimators",
     "max_depth", "hidden_units", "lr_decay", "optimizer", "activation", "max_len", "num_heads"}
)  # fmt: skip
_NO_METRICS = frozenset(
    {"", "id", "uuid", "pid", "rank", "local_rank", "world_size", "index", "row", "line", "lineno",
     "level_0", "hostname", "node"}
)  # fmt: skip
_CLOCK_WORDS = frozenset({"wall", "timestamp", "date", "datetime", "clock", "utc", "walltime"})
# these kinds name columns of data sets as often as metrics
_AMBIGUOUS = frozenset({"score", "error", "reward", "map", "entropy", "correlation", "precision"})
_SCORES = (HIGHER_IS_BETTER | LOWER_IS_BETTER) - {"loss", "reward", "score"}
_UNIX_TIME = 1e8  # seconds since 1970; no duration of a run comes near
_FILE_WORDS = frozenset(
    {"log", "logs", "metrics", "metric", "results", "result", "history", "stats", "scalars",
     "curve", "curves", "data", "out", "csv", "json", "epoch", "step", "per", "all", "summary"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cells:
    """The numbers of one column and the rows that they stand in."""

    name: str
    rows: Ints
    values: Floats


@dataclass(frozen=True, slots=True)
class Columns:
    """A metrics file by column; `texts` holds the columns that say what a row is about."""

    numbers: Sequence[Cells]
    places: Ints
    texts: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Clock:
    """The step and the epoch of every row, where the file tells them."""

    steps: Floats | None
    epochs: Floats | None
    columns: frozenset[int]


@lru_cache(maxsize=4096)
def is_key(name: str) -> bool:
    """Tell whether a column may say which metric, split or run a row is about."""
    return _flat(name) in TAGS | SPLITS | RUNS


def _flat(name: str) -> str:
    return "_".join(words(name)) or name.strip().lower()


def phase_hint(path: Path) -> str | None:
    """Return the phase that a name gives away: ``val.csv``, ``eval_metrics.json``, ``val/log.csv``.

    A folder called "test" is as likely a trial, so that only validation is believed of a folder.
    """
    left = [w for w in words(path.stem) if w not in _FILE_WORDS]
    if len(left) == 2 and is_measured(canonical(path.stem)):
        left = [w for w in left if w in PHASES]
    if not left:
        folder = PHASES.get(path.parent.name.lower())
        return folder if folder == "val" else None
    return PHASES.get(left[0]) if len(left) == 1 else None


def title(path: Path) -> str:
    """Return what a file calls its single metric; TensorBoard writes ``run-x-tag-train_loss``."""
    return path.stem.rsplit("tag-", 1)[-1]


def _folder_title(path: Path) -> str:
    """Return the part of a metric's name that DVCLive makes folders of: ``plots/metrics/train``."""
    folders = path.parts[:-1]
    for i in range(len(folders) - 1, 0, -1):
        if folders[i - 1 : i + 1] == ("plots", "metrics"):
            return "/".join(folders[i + 1 :])
    return ""


@np.errstate(all="ignore")  # a diverged run holds infinities
def to_series(columns: Columns, path: Path, unit: str, prefix: str = "") -> list[Series]:
    """Return the series that the columns hold, in the order of the columns."""
    clock = _find_clock(columns)
    phase = phase_hint(path)
    held_out = scores_of_validation([c.name for c in columns.numbers])
    prefix = prefix or _folder_title(path)
    found: list[Series] = []
    runs = _groups(columns, RUNS)
    for run, in_run in runs:
        clock_here = _unwrapped(clock, in_run)
        for split, in_split in _splits(columns):
            for name, cells in _metrics(columns, clock.columns, prefix, title(path)):
                keep = in_run[cells.rows] & in_split[cells.rows]
                kept = Cells(name, cells.rows[keep], cells.values[keep])
                if not len(kept.rows):
                    continue
                own = canonical(name, split or ("val" if name in held_out else phase))
                shown = f"{cells.name} ({run})" if run else cells.name
                origin = Origin(str(path), shown or name, unit)
                found.append(_series(own, kept, clock_here, columns.places, origin))
    return found


def _series(name: str, cells: Cells, clock: _Clock, places: Ints, origin: Origin) -> Series:
    rows = cells.rows
    epochs = clock.epochs[rows] if clock.epochs is not None else np.empty(0)
    axis, steps = "point", rows.astype(np.float64)
    if clock.steps is not None:
        axis, steps = "step", clock.steps[rows]
    elif len(epochs) and not _stands_still(epochs):
        axis, steps = "epoch", epochs
    return Series(name, cells.values, steps, origin, axis, epochs, places[rows])


def _stands_still(epochs: Floats) -> bool:
    """Tell whether an epoch has many rows, so that it does not order them."""
    return len(epochs) > 2 and float(np.mean(np.diff(epochs) == 0)) > 0.3


def _find_clock(columns: Columns) -> _Clock:
    count = len(columns.places)
    best: dict[str, tuple[tuple[float, int], Floats]] = {}
    used = set()
    for i, cells in enumerate(columns.numbers):
        kind = "step" if is_step(cells.name) else "epoch" if is_epoch(cells.name) else None
        if kind is None:
            continue
        used.add(i)
        known = np.isfinite(cells.values)
        if known.sum() < 0.5 * count and kind == "step" and not _is_sparse_clock(columns, cells):
            continue
        if not known.any():
            continue
        filled = _fill(cells.rows[known], cells.values[known], count)
        if kind == "step" and count > 1 and filled.min() == filled.max():
            continue
        # the counter that never goes back and counts finest is the one of the whole run
        ahead = np.mean(filled[1:] >= filled[:-1]) if count > 1 else 1.0
        rank = (round(float(ahead), 2), len(np.unique(filled)))
        if kind not in best or rank > best[kind][0]:
            best[kind] = (rank, filled)
    steps, epochs = (best[k][1] if k in best else None for k in ("step", "epoch"))
    if not used and _is_row_an_epoch(columns):
        epochs = np.arange(count, dtype=np.float64)
    return _Clock(steps, epochs, frozenset(used))


def _is_row_an_epoch(columns: Columns) -> bool:
    """Tell whether every row has a validation in it, as a Keras history does."""
    names = [c.name for c in columns.numbers if len(c.rows) == len(columns.places)]
    return "val" in {phase_of(canonical(n)) for n in certain(names)} and len(names) > 1


def _is_sparse_clock(columns: Columns, cells: Cells) -> bool:
    """Tell whether a step stands in few rows because the file has no other clock."""
    others = [
        c for c in columns.numbers if c is not cells and (is_step(c.name) or is_epoch(c.name))
    ]
    return not others and len(cells.rows) > 1


def _fill(rows: Ints, values: Floats, count: int) -> Floats:
    """Carry known values on to the rows that lack one; Lightning leaves some epochs empty."""
    position = np.clip(np.searchsorted(rows, np.arange(count), side="right") - 1, 0, None)
    return np.asarray(values[position], dtype=np.float64)


def _unwrapped(clock: _Clock, rows: NDArray[np.bool_]) -> _Clock:
    if clock.steps is None:
        return clock
    steps = clock.steps.copy()
    epochs = clock.epochs[rows] if clock.epochs is not None else np.empty(0)
    steps[rows] = unwrap(steps[rows], epochs)
    return _Clock(steps, clock.epochs, clock.columns)


def _groups(
    columns: Columns, names: frozenset[str], limit: int = MAX_GROUPS
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return the values of the first column of those names, each with its rows."""
    everything = [("", np.ones(len(columns.places), dtype=bool))]
    texts = next((t for n, t in columns.texts.items() if _flat(n) in names), None)
    if texts is None:
        return everything
    distinct = dict.fromkeys(texts)
    if not 2 <= len(distinct) <= limit:
        return everything
    cells = np.array(texts, dtype=object)
    return [(value, cells == value) for value in distinct]


def _splits(columns: Columns) -> list[tuple[str | None, NDArray[np.bool_]]]:
    found = _groups(columns, SPLITS)
    phases = [next((PHASES[w] for w in words(value) if w in PHASES), None) for value, _ in found]
    if len(found) < 2 or None in phases:
        return [(None, np.ones(len(columns.places), dtype=bool))]
    return [(phase, rows) for phase, (_, rows) in zip(phases, found, strict=True)]


def _metrics(
    columns: Columns, clock_columns: frozenset[int], prefix: str, own_title: str
) -> Iterator[tuple[str, Cells]]:
    """Yield what is a metric, under the name that says most about it."""
    tags = _groups(columns, TAGS, limit=max(MAX_GROUPS, len(columns.places) // 3))
    value = next((c for c in columns.numbers if _flat(c.name) in VALUES), None)
    if value is not None and len(tags) > 1:
        for tag, rows in tags:
            keep = rows[value.rows]
            yield tag, _without_gaps(Cells(tag, value.rows[keep], value.values[keep]))
        return
    own = [c for i, c in enumerate(columns.numbers) if i not in clock_columns and _is_metric(c)]
    settings = [c for c in own if c.name.lower() in SETTINGS or canonical(c.name) == "lr"]
    clocks = [columns.numbers[i].values for i in clock_columns]
    is_counted = any(len(v) and float(np.ptp(v)) > 0.0 for v in clocks)
    if not is_counted and len(settings) > 1:  # one row per trial of a search
        own = [c for c in own if c not in settings]
    for cells in own:
        name = cells.name.rsplit(" - ", 1)[-1]  # a W&B export writes "run - metric"
        if _flat(name) in VALUES and (prefix or len(own) == 1):
            name = prefix or own_title
        elif prefix:
            name = f"{prefix}/{name}"
        elif name.lower() in PHASES and is_measured(canonical(own_title)):
            name = f"{own_title}/{name}"  # losses.csv with the columns "train" and "val"
        yield name, _without_gaps(cells)


def _is_metric(cells: Cells) -> bool:
    name = cells.name.strip()
    if _flat(name) in _NO_METRICS | RUNS or name.startswith(("_", "Unnamed")):
        return False
    if name.endswith(("__MIN", "__MAX")):  # a W&B export adds the bounds of every point
        return False
    parts = set(words(name))
    if parts & _CLOCK_WORDS:
        return False
    return not (parts & {"time", "created"} and bool(np.all(cells.values > _UNIX_TIME)))


def _without_gaps(cells: Cells) -> Cells:
    """Drop the NaN that pandas writes for "not measured here"; a run that diverged keeps its own.

    A loss that became NaN stays so. A column of NaN with numbers in between is a sparse one.
    """
    missing = np.isnan(cells.values)
    if not missing.any() or float(missing.mean()) < 0.5:
        return cells
    finite = np.flatnonzero(~missing)
    if not len(finite) or finite[-1] < np.flatnonzero(missing)[0]:
        return cells
    # after the last number, a sparse column has a gap no longer than those before
    longest = int(np.diff(np.append(-1, finite)).max())
    keep = ~missing
    if len(missing) - 1 - finite[-1] > 2 * longest:
        keep[finite[-1] + longest :] = True
    return Cells(cells.name, cells.rows[keep], cells.values[keep])


def scores_of_validation(names: Sequence[str]) -> frozenset[str]:
    """Return the scores without a phase in a table of a training and a validation loss.

    fastai and the Trainer's notebook measure them where the validation loss is measured.
    """
    phases = {n: next((PHASES[w] for w in words(n) if w in PHASES), None) for n in names}
    kinds = {n: kind_of(canonical(n)) for n in names}
    if not {"train", "val"} <= {phases[n] for n in names if kinds[n] == "loss"}:
        return frozenset()
    told = {kinds[n] for n in names if phases[n] is not None}
    return frozenset(n for n in names if phases[n] is None and kinds[n] in _SCORES - told)


def recognised(names: Iterable[str]) -> list[str]:
    """Return the names that are metrics of training."""
    return [n for n in names if is_measured(canonical(n.rsplit(" - ", 1)[-1]))]


def certain(names: Iterable[str]) -> list[str]:
    """Return the names that hardly name anything but metrics of training."""
    kinds = {n: kind_of(canonical(n.rsplit(" - ", 1)[-1])) for n in recognised(names)}
    return [n for n, kind in kinds.items() if kind not in _AMBIGUOUS]
