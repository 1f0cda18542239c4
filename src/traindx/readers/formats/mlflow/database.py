"""MLflow's SQLite database, opened read-only and distrusted: it may be damaged or hostile."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from traindx.errors import UnreadableArtifact
from traindx.model.merging import resolve
from traindx.model.metric_names import canonical
from traindx.model.run import Config, Event, Origin, Run, Series, Setting
from traindx.readers.formats.mlflow.run_folder import ending
from traindx.readers.formats.settings import MAX_SETTINGS, literal
from traindx.readers.text import damage
from traindx.registry import reader

if TYPE_CHECKING:
    from sqlite3 import Connection

MAGIC = b"SQLite format 3\0"
MAX_SECONDS = 60.0  # a view may compute for ever
MAX_POINTS = 20_000_000
MAX_NAMES = 4000
MAX_TEXT = 1 << 20
HUGE = 1.79e308  # what MLflow stores for an infinity
TABLES = frozenset({"runs", "metrics"})
_EVERY = 100_000  # instructions of SQLite between two looks at the clock


def sniff(path: Path, head: bytes) -> float:
    """Recognise a database that has the tables of MLflow."""
    if not head.startswith(MAGIC):
        return 0.0
    # the schema stands in the first page, or in those that it leads to
    is_named = "mlflow" in path.name.lower() or "mlruns" in path.name.lower()
    return 0.95 if b"run_uuid" in head or b"lifecycle_stage" in head else 0.5 if is_named else 0.15


@reader("mlflow database", sniff)
def read(path: Path) -> Run:
    """Read the run that tells most of the latest ones, and name the others."""
    from sqlite3 import DatabaseError, connect

    uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    connection = None
    try:
        connection = connect(uri, uri=True)
        _distrust(connection)
        return _read(connection, path)
    except (DatabaseError, ValueError, OverflowError, MemoryError) as error:
        why = f"it is damaged or no database of MLflow: {error}"
        raise UnreadableArtifact(str(path), why, "a whole mlflow.db") from None
    finally:
        if connection is not None:
            connection.close()


def _distrust(connection: Connection) -> None:
    """Allow nothing but reading, and not for ever."""
    import sqlite3

    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
    functions = {"count", "max", "min", "sum"}

    def authorize(action: int, first: Any, second: Any, *_: Any) -> int:
        is_plain = action in allowed and (
            action != sqlite3.SQLITE_FUNCTION or str(second).lower() in functions
        )
        return sqlite3.SQLITE_OK if is_plain else sqlite3.SQLITE_DENY

    started = time.monotonic()
    connection.text_factory = lambda raw: raw[:MAX_TEXT].decode(errors="replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.set_authorizer(authorize)
    connection.set_progress_handler(lambda: time.monotonic() - started > MAX_SECONDS, _EVERY)


def _read(connection: Connection, path: Path) -> Run:
    found = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchmany(10_000)
    plain = {
        str(name)
        for name, kind, sql in found
        if kind == "table" and not str(sql).upper().startswith("CREATE VIRTUAL")
    }
    if not plain >= TABLES:
        raise UnreadableArtifact(str(path), "it has no runs of MLflow in it", "an mlflow.db")
    chosen, others = _choose(connection)
    if chosen is None:
        raise UnreadableArtifact(str(path), "it holds no run", "an mlflow.db with runs in it")
    points = _Points()
    said = points.take(connection, chosen.id)
    settings = _settings(connection, chosen.id, path) if "params" in plain else ()
    notes: list[str] = [*said]
    if others:
        shown = ", ".join(o.shown for o in others[:5])
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        notes.append(
            f"it holds {len(others) + 1} runs; this is {chosen.shown}. Left out: {shown}{more}"
        )
    artifact, events = damage(path, "mlflow database", notes)
    ended: tuple[Event, ...] = ending(chosen.status, str(path))
    return Run(
        name=chosen.name or chosen.id,
        series=resolve(points.series(path)),
        config=Config(settings),
        events=(*events, *ended),
        artifacts=(artifact,),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    id: str
    name: str
    status: str
    started: float
    points: int

    @property
    def shown(self) -> str:
        return f"{self.name} ({self.id[:8]})" if self.name else self.id[:8]


def _choose(connection: Connection) -> tuple[_Entry | None, list[_Entry]]:
    """Return the latest run that has metrics, and the others, latest first."""
    counts: dict[str, int] = {}
    counted = "SELECT run_uuid, count(*) FROM metrics GROUP BY run_uuid"
    for run, count in connection.execute(counted).fetchmany(100_000):
        counts[str(run)] = int(count)
    entries = []
    told = connection.execute(
        "SELECT run_uuid, name, status, start_time, lifecycle_stage FROM runs"
    )
    for run, name, status, started, stage in told.fetchmany(100_000):
        if stage != "deleted":
            when = float(started) if isinstance(started, (int, float)) else 0.0
            entries.append(
                _Entry(str(run), str(name or ""), str(status), when, counts.get(str(run), 0))
            )
    entries.sort(key=lambda e: (e.points > 1, e.started, e.points), reverse=True)
    return (entries[0], entries[1:]) if entries else (None, [])


def _settings(connection: Connection, run: str, path: Path) -> tuple[Setting, ...]:
    rows = connection.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run,))
    return tuple(
        Setting(str(key).replace("/", "."), literal(str(value)), str(path), f"params, {key}")
        for key, value in rows.fetchmany(MAX_SETTINGS)
    )


@dataclass(slots=True)
class _Points:
    """The points of a run by metric."""

    steps: dict[str, array[float]] = field(default_factory=dict)
    values: dict[str, array[float]] = field(default_factory=dict)
    rows: dict[str, array[int]] = field(default_factory=dict)

    def take(self, connection: Connection, run: str) -> list[str]:
        """Read the points in the order in which they were written; say what was left out."""
        from sqlite3 import DatabaseError

        taken = left_out = 0
        try:
            for key, step, value, row in _rows(connection, run):
                if key not in self.steps and len(self.steps) >= MAX_NAMES:
                    left_out += 1
                    continue
                self.steps.setdefault(key, array("d")).append(step)
                self.values.setdefault(key, array("d")).append(value)
                self.rows.setdefault(key, array("q")).append(row)
                taken += 1
                if taken >= MAX_POINTS:
                    return [f"only the first {MAX_POINTS} points were read"]
        except DatabaseError as error:
            return [f"it is damaged; what could be read was: {error}"]
        return [f"{left_out} points were left out: there are too many metrics"] * bool(left_out)

    def series(self, path: Path) -> Iterator[Series]:
        """Yield a series per metric."""
        for key, steps in self.steps.items():
            is_counted = len(set(steps)) > 1 or len(steps) < 2  # without a step, MLflow writes 0
            yield Series(
                canonical(key),
                np.array(self.values[key], dtype=np.float64),
                np.array(steps if is_counted else range(len(steps)), dtype=np.float64),
                Origin(str(path), key, "row"),
                "step" if is_counted else "point",
                places=np.array(self.rows[key], dtype=np.int64),
            )


def _rows(connection: Connection, run: str) -> Iterator[tuple[str, float, float, int]]:
    sql = "SELECT rowid, key, step, value, is_nan FROM metrics WHERE run_uuid = ?"
    for row, key, step, value, is_nan in connection.execute(sql, (run,)):
        if not isinstance(value, (int, float)) or not isinstance(step, (int, float)):
            continue
        number = math.nan if is_nan else float(value)
        number = math.copysign(math.inf, number) if abs(number) >= HUGE else number
        yield str(key), float(step), number, int(row)
