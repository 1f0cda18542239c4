"""What is known about one training run: frozen values, no input or output.

A point of a series keeps three coordinates: its step, its epoch, and its place in the artifact,
because evidence has to lead back to the very line it came from. NaN, Inf, gaps, repeated and
backward steps are data: points stay in the order in which the run wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx.model.recording import Recording

# words in the name of a loss that is not meant to fall
NO_DESCENT = frozenset(
    {"d", "g", "disc", "discriminator", "generator", "gen", "adv", "adversarial", "critic",
     "actor", "policy", "pg", "value", "vf", "kl"}
)  # fmt: skip

# errors that are losses where a run names no loss, in order of preference
LOSSES_BY_NAME = ("mse", "mae", "rmse", "perplexity", "bits")

# words that make a learning-rate setting something else than the rate in use
RATE_BOUNDS = frozenset(
    {"min", "max", "final", "end", "decay", "gamma", "schedule", "scheduler", "warmup", "factor",
     "step", "steps", "patience", "policy", "type"}
)  # fmt: skip

_CELL = re.compile(r"# cell \d+")  # how the notebook reader marks where a cell begins

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a series was read: the artifact, the name it had there, and what a place counts."""

    artifact: str
    name: str
    unit: str = "line"
    decimals: int = 0  # after the point of a value that never changes; 0 where nobody looked


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One metric over a run, in the order in which it was written."""

    name: str
    values: Floats
    steps: Floats
    origin: Origin
    axis: str = "step"
    epochs: Floats = field(default_factory=lambda: np.empty(0))
    places: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_finite(self) -> NDArray[np.bool_]:
        return np.isfinite(self.values)

    @property
    def last(self) -> float:
        return float(self.values[-1]) if len(self.values) else float("nan")

    def take(self, which: Any) -> Series:
        """Return the points that an index array, slice or mask selects."""
        return Series(
            self.name,
            self.values[which],
            self.steps[which],
            self.origin,
            self.axis,
            self.epochs[which] if len(self.epochs) else self.epochs,
            self.places[which] if len(self.places) else self.places,
        )

    def finite(self) -> Series:
        """Return the points whose value is a number."""
        keep = self.is_finite
        return self if bool(keep.all()) else self.take(keep)

    def renamed(self, name: str) -> Series:
        return Series(
            name, self.values, self.steps, self.origin, self.axis, self.epochs, self.places
        )

    def restarts(self) -> list[int]:
        """Return the positions at which the step counter goes back: the run was resumed."""
        if len(self.steps) < 2:
            return []
        return [int(i) + 1 for i in np.flatnonzero(np.diff(self.steps) < 0)]

    def timeline(self) -> Series:
        """Return the points that count: what a resumed run did again replaces the first time."""
        keep = np.ones(len(self), dtype=bool)
        for restart in self.restarts():
            keep[:restart] &= self.steps[:restart] < self.steps[restart]
        return self if bool(keep.all()) else self.take(keep)

    def position_of(self, event: Event) -> int | None:
        """Return the first point at or after an event: by line, else by step, else by epoch."""
        line = event.locator.removeprefix("line ")
        same = event.artifact == self.origin.artifact and self.origin.unit == "line"
        if same and line.isdigit() and len(self.places):
            return int(np.searchsorted(self.places, int(line)))
        if event.step is not None and self.axis == "step":
            return int(np.searchsorted(self.steps, event.step))
        epochs = self.steps if self.axis == "epoch" else self.epochs
        if event.epoch is not None and len(epochs):
            return int(np.searchsorted(epochs, event.epoch))
        return None

    def where(self, index: int) -> str:
        """Return the place of a point in its artifact, such as ``line 812``."""
        if len(self.places):
            return f"{self.origin.unit} {int(self.places[index])}"
        return f"{self.origin.name}, point {index % len(self) + 1}"

    def when(self, index: int) -> str:
        """Return a point's time in words: its step, and its epoch where that is known."""
        step = f"{self.axis} {_plain(float(self.steps[index]))}"
        if self.axis == "epoch" or not len(self.epochs) or not np.isfinite(self.epochs[index]):
            return step
        return f"{step} (epoch {_plain(float(self.epochs[index]))})"


def _plain(number: float) -> str:
    return f"{number:.0f}" if number == int(number) else f"{number:.2f}"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a place in an artifact: a warning, a resume, a boundary."""

    kind: str
    text: str
    artifact: str
    locator: str = ""
    step: float | None = None
    epoch: float | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One level of a traceback."""

    file: str
    line: int
    function: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A parsed exception: what was raised, where, and on which rank."""

    type: str
    message: str
    artifact: str
    locator: str = ""
    frames: tuple[Frame, ...] = ()
    rank: int | None = None
    step: float | None = None
    time_s: float | None = None  # since 1970, where the artifact tells: which rank failed first


@dataclass(frozen=True, slots=True)
class TextSample:
    """A text that the model produced, as it was logged."""

    text: str
    artifact: str
    locator: str = ""
    step: float | None = None


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each true class (a row) was taken for each class (a column)."""

    matrix: tuple[tuple[float, ...], ...]
    labels: tuple[str, ...]
    artifact: str
    locator: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the training code; the text of a notebook has a comment before every cell."""

    path: str
    text: str

    def where(self, line: int) -> str:
        """Return a line's place as its author knows it: in a notebook, the line of a cell."""
        if self.path.endswith(".ipynb"):
            above = self.text.split("\n")[:line]
            for back, text in enumerate(reversed(above)):
                if _CELL.fullmatch(text):
                    return f"{text.removeprefix('# ')}, line {back}"
        return f"line {line}"


@dataclass(frozen=True, slots=True)
class Setting:
    """A configured value and the place where it was set."""

    key: str
    value: Any
    artifact: str
    locator: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a run, flattened to dotted keys."""

    settings: tuple[Setting, ...] = ()

    def find(self, *names: str) -> Setting | None:
        """Return the first setting whose last key part is one of the names, best name first."""
        for name in names:
            for setting in self.settings:
                if _last_part(setting.key) == name:
                    return setting
        return None

    def matching(self, pattern: str) -> Iterator[Setting]:
        """Yield the settings whose last key part matches a shell pattern such as ``*lr``."""
        for setting in self.settings:
            if fnmatchcase(_last_part(setting.key), pattern):
                yield setting

    def learning_rates(self) -> Iterator[Setting]:
        """Yield the settings that are learning rates in use, not their bounds or schedules."""
        for setting in self.settings:
            words = set(_last_part(setting.key).split("_"))
            is_rate = "lr" in words or {"learning", "rate"} <= words
            if is_rate and not words & RATE_BOUNDS and as_number(setting.value) is not None:
                yield setting

    def number(self, *names: str) -> float | None:
        """Return the first of the named settings that is a number."""
        for name in names:
            setting = self.find(name)
            number = as_number(setting.value) if setting else None
            if number is not None:
                return number
        return None


def _last_part(key: str) -> str:
    return key.rsplit(".", 1)[-1].lower().replace("-", "_")


def file_name(path: str) -> str:
    """Return the last part of a path, as any system writes it."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def as_number(value: Any) -> float | None:
    """Return a setting's value as a number; YAML reads ``1e-2`` as text, people mean a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter or buffer of a checkpoint or model summary."""

    name: str
    shape: tuple[int, ...]
    dtype: str = ""
    statistics: Mapping[str, float] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) if self.shape else 1


@dataclass(frozen=True, slots=True)
class Architecture:
    """The parameters of a model, the artifact that listed them, and when they were saved."""

    tensors: tuple[Tensor, ...]
    artifact: str
    step: float | None = None
    epoch: float | None = None


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file or stream that was read, by which reader, and what was wrong with it."""

    path: str
    reader: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Everything known about one training run."""

    name: str = "run"
    series: Mapping[str, Series] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    failures: tuple[Failure, ...] = ()
    sources: tuple[Source, ...] = ()
    config: Config = field(default_factory=Config)
    architecture: Architecture | None = None
    artifacts: tuple[Artifact, ...] = ()
    symptoms: tuple[str, ...] = ()
    checkpoints: tuple[Architecture, ...] = ()  # oldest first; `architecture` is the latest
    samples: tuple[TextSample, ...] = ()  # in the order in which the run wrote them
    confusions: tuple[Confusion, ...] = ()
    documents: tuple[Source, ...] = ()  # configuration files that lie beside the sources
    recording: Recording | None = None  # what a recorder saw inside the training processes

    def get(self, name: str) -> Series | None:
        """Return the series of that canonical name as it counts, resumed parts replaced."""
        series = self.series.get(name)
        return series.timeline() if series is not None and len(series) else None

    def matching(self, pattern: str) -> list[Series]:
        """Return the series whose names match a shell pattern such as ``layers/*/grad_norm``."""
        return [s.timeline() for n, s in self.series.items() if fnmatchcase(n, pattern) and len(s)]

    def main_loss(self, phase: str = "train") -> Series | None:
        """Return the one loss that stands for a phase: the total, or the longest of its parts.

        A run that tells of no loss tells of an error that is one: ``mse=0.036 r2=0.947``.
        """
        total = self.get(f"loss/{phase}")
        if total is not None:
            return total
        parts = self.matching(f"loss/{phase}/*")
        if parts:
            return max(parts, key=len)
        errors = (self.get(f"{kind}/{phase}") for kind in LOSSES_BY_NAME)
        return next((s for s in errors if s is not None), None)

    def objective(self) -> Series | None:
        """Return the training loss if it is one that training should lower, else None.

        Adversarial and reinforcement-learning losses move with their opponent or policy, and a
        sum with a growing weight on its KL term rises by design: their course says nothing. Where
        such a sum does not rise, it says as much as any other.
        """
        parts = {w for n in self.series if n.startswith("loss/") for w in n.split("/")[2:]}
        if any(set(part.split("_")) & NO_DESCENT for part in parts) or self.has("reward/*"):
            return None
        recorded = {p.path for p in self.recording.processes} if self.recording else set()
        if any(s.origin.artifact in recorded for s in self.matching("loss/train/*")):
            return None  # several optimizers, each with a loss of its own: they pull at each other
        loss = self.main_loss()
        return None if loss is not None and self.has("kl/*") and _rises(loss) else loss

    def has(self, need: str) -> bool:
        """Tell whether the run has what a detector needs; ``a|b`` means one of the two.

        A need is a kind of content (``config``, ``source``, ``failure``, ``architecture``,
        ``events``, ``samples``, ``confusions``, ``checkpoint``, ``recording``), ``checkpoints`` for
        two of them to compare, ``loss`` for any training loss, or a pattern of series names.
        """
        return any(self._has_one(part) for part in need.split("|"))

    def _has_one(self, need: str) -> bool:
        if need == "config":
            return bool(self.config.settings)
        if need == "source":
            return bool(self.sources)
        if need == "failure":
            return bool(self.failures)
        if need == "architecture":
            return self.architecture is not None
        if need == "events":
            return bool(self.events)
        if need == "samples":
            return bool(self.samples)
        if need == "confusions":
            return bool(self.confusions)
        if need == "checkpoint":
            refused = any(e.kind.endswith("-checkpoint") for e in self.events)
            return refused or bool(self.checkpoints)
        if need == "checkpoints":
            return len(self.checkpoints) > 1
        if need == "recording":
            return self.recording is not None
        if need == "step":
            processes = self.recording.processes if self.recording is not None else ()
            return any(step.operations for p in processes for step in p.captured)
        if need == "loss":
            return self.main_loss() is not None
        return any(fnmatchcase(n, need) and len(s) for n, s in self.series.items())


def _rises(loss: Series) -> bool:
    """Tell whether a loss ends above its lowest level, or is lost."""
    levels = [float(np.median(part)) for part in np.array_split(loss.values, 10) if len(part)]
    return not levels[-1] <= min(levels) + 0.02 * abs(min(levels))


def join_points(first: Series, second: Series) -> Series:
    """Append one series to another of the same metric, in that order."""

    def both(a: Sequence[Any] | NDArray[Any], b: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
        complete = len(a) == len(first) and len(b) == len(second)
        return np.concatenate([np.asarray(a), np.asarray(b)]) if complete else np.empty(0)

    return Series(
        first.name,
        np.concatenate([first.values, second.values]),
        np.concatenate([first.steps, second.steps]),
        first.origin,
        first.axis,
        both(first.epochs, second.epochs),
        both(first.places, second.places).astype(np.int64),
    )
