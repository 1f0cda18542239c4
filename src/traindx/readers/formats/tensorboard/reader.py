"""TensorBoard event files: scalars, norms out of histograms, and the settings noted beside them.

A point's place is the number of its record in the file, counted from 1. A record whose checksum is
wrong is left out; behind a damaged length nothing can be found any more. Two files of one folder
are two artifacts.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from traindx.errors import UnreadableArtifact
from traindx.model.merging import resolve
from traindx.model.metric_names import PHASES, canonical, is_epoch, is_step, words
from traindx.model.run import Config, Floats, Ints, Origin, Run, Series
from traindx.readers.formats.tensorboard.checksum import masked_each
from traindx.readers.formats.tensorboard.events import EventContent, parse
from traindx.readers.formats.tensorboard.layouts import gather
from traindx.readers.formats.tensorboard.noted_settings import NotedSettings
from traindx.readers.formats.tensorboard.tag_tracks import TagTrack, Tracks
from traindx.readers.formats.tensorboard.tfrecords import (
    HEADER,
    RecordBlock,
    TFRecords,
    payload_length,
)
from traindx.readers.text import damage
from traindx.registry import reader

VERSION = b"brain.Event:"
SHORT = 512  # bytes; a record without content is worth a checksum only if it is no image
_PLUGINS = {"scalar": (b"", b"scalars"), "histogram": (b"", b"histograms")}
_PARAMETER = re.compile(
    r"(?:.*[./_])?(?:weights?|bias(?:es)?|kernel|gamma|beta|embeddings?)(?:[._:]?\d+)?"
    r"(?:[_.](?:ih|hh)_l\d+\w*)?",
    re.IGNORECASE,
)
_GRADIENT = (
    re.compile(r"(.+?)[._/ -]grad(?:ient)?s?(?:[_ -]?hist(?:ogram)?)?", re.IGNORECASE),
    re.compile(r"grad(?:ient)?s?[._ -](.+)", re.IGNORECASE),
)
_NO_LAYER = frozenset({"total", "all", "norm", "norms", "global", "model", "global_norm"})


def sniff(path: Path, head: bytes) -> float:
    """Say whether the first record of a file states the version of event files."""
    return 0.99 if _is_events(head) else 0.0


def _is_events(head: bytes) -> bool:
    length = payload_length(head[:HEADER])
    if length is None or HEADER + length > len(head):
        return False
    try:
        return parse(head, HEADER, HEADER + length).version.startswith(VERSION)
    except ValueError:
        return False


@reader("tensorboard", sniff)
def read(path: Path) -> Run:
    """Read every scalar as a series, and histograms of parameters as norms per layer."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if not _is_events(head):
        why = "it is no TensorBoard event file" if head else "it is empty"
        raise UnreadableArtifact(str(path), why, "a file named events.out.tfevents…")
    contents = _Contents(path)
    records = TFRecords(path)
    for block in records:
        contents.add(block)
    warnings = [*records.warnings, *contents.finish()]
    series = resolve(contents.series())
    settings = tuple(contents.notes.settings.values())
    if not series and not settings and not warnings:
        warnings.append("it holds no scalars: the run logged none, or ended before it did")
    artifact, events = damage(path, "tensorboard", warnings)
    name = path.resolve().parent.name or path.stem
    return Run(
        name=name, series=series, config=Config(settings), artifacts=(artifact,), events=events
    )


class _Contents:
    """What the records of a file say, gathered block by block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tracks = Tracks()
        self.notes = NotedSettings(str(path))
        self.plugins: dict[bytes, bytes] = {}
        self.corrupt: list[int] = []

    def add(self, block: RecordBlock) -> None:
        """Add the records of a block: those of a common layout at once, the others singly."""
        self.add_singly(block, gather(block, self.tracks, self.corrupt))
        self.tracks.settle()

    def add_singly(self, block: RecordBlock, positions: Ints) -> None:
        """Add records by parsing each."""
        found: list[tuple[int, EventContent]] = []
        for i in positions.tolist():
            start, length = int(block.starts[i]), int(block.lengths[i])
            try:
                told = parse(block.data, start, start + length)
            except ValueError:
                self.corrupt.append(block.first + i)
                continue
            if not told.is_empty or length <= SHORT:
                found.append((i, told))
        which = np.array([i for i, _ in found], dtype=np.int64)
        for (i, told), is_intact in zip(found, _is_intact(block, which), strict=True):
            if is_intact:
                self._add_told(told, block.first + i)
            else:
                self.corrupt.append(block.first + i)

    def _add_told(self, told: EventContent, place: int) -> None:
        step, places = np.array([float(told.step)]), np.array([place])
        for scalar in told.scalars:
            self.tracks.add(scalar.tag, "scalar", step, np.array([scalar.value]), places)
        for tag, norm in told.norms:
            self.tracks.add(tag, "histogram", step, np.array([norm]), places)
        for tag, text in told.texts:
            self.notes.add_text(tag, text, place)
        for content in told.hparams:
            self.notes.add_hparams(content, place)
        if len(self.plugins) < 100_000:
            for tag, plugin in told.plugins.items():
                self.plugins.setdefault(tag, plugin)

    def finish(self) -> list[str]:
        """Return in words what was left out."""
        said = self.tracks.finish()
        if self.corrupt:
            first, count = min(self.corrupt), len(self.corrupt)
            which = f"record {first} is" if count == 1 else f"{count} records, from {first} on, are"
            said.append(f"{which} corrupt (wrong checksum) and left out")
        return said

    def series(self) -> list[Series]:
        """Return every tag as a series; the tags that count epochs are a coordinate of the rest."""
        tags = {tag for tag, _ in self.tracks.of}
        clock: TagTrack | None = None
        found = []
        told = [item for item in self.tracks.of.items() if item[1].size]
        for (tag, kind), track in sorted(told, key=lambda item: int(item[1].places[0])):
            name = tag.decode(errors="replace")
            if self.plugins.get(tag, b"") not in _PLUGINS[kind]:
                continue
            if kind == "scalar" and is_epoch(name):
                clock = track if clock is None or track.size > clock.size else clock
            elif kind == "scalar" and is_step(name):
                continue
            elif own := self._name(name, kind, len(tags) == 1):
                found.append((own, name, track))
        return [self._series(own, name, track, clock) for own, name, track in found]

    def _name(self, tag: str, kind: str, is_only: bool) -> str | None:
        if kind == "histogram":
            return layer_name(tag)
        folder = self.path.resolve().parent.name
        start = tag.replace("/", "_").replace(" ", "_") + "_"
        if is_only and folder.startswith(start) and len(folder) > len(start):
            # add_scalars writes each of its curves to a file of its own, under the same tag
            return canonical(f"{tag}/{folder[len(start) :]}")
        return canonical(tag, PHASES.get(folder.lower()))

    def _series(self, own: str, tag: str, track: TagTrack, clock: TagTrack | None) -> Series:
        origin = Origin(str(self.path), tag, "record")
        is_keras = words(tag)[:1] == ["epoch"] and tag.startswith("epoch_")  # its step is the epoch
        axis = "epoch" if is_keras else "step"
        epochs = _epochs(clock, track.steps) if clock is not None and not is_keras else np.empty(0)
        return Series(own, track.values, track.steps, origin, axis, epochs, track.places)


def _is_intact(block: RecordBlock, which: Ints) -> list[bool]:
    if not len(which):
        return []
    starts, lengths = block.starts[which], block.lengths[which]
    data = np.frombuffer(block.data, dtype=np.uint8)
    ends = (starts + lengths).tolist()
    stored = [int.from_bytes(block.data[end : end + 4], "little") for end in ends]
    return [
        a == b for a, b in zip(masked_each(data, starts, lengths).tolist(), stored, strict=True)
    ]


def _epochs(clock: TagTrack, steps: Floats) -> Floats:
    """Return the epoch of each step: the last one told at or before it."""
    order = np.argsort(clock.steps, kind="stable")
    at = np.searchsorted(clock.steps[order], steps, side="right") - 1
    epochs = clock.values[order][np.maximum(at, 0)]
    return np.where(at >= 0, epochs, np.nan)


def layer_name(tag: str) -> str | None:
    """Return the canonical name of a histogram's norm, if it is of gradients or weights."""
    tag = re.sub(r"/hist(?:ogram)?(?:_summary)?$", "", tag.strip())
    own = canonical(tag)
    if own.startswith("layers/"):
        return own
    for pattern in _GRADIENT:
        match = pattern.fullmatch(tag)
        if match and match[1].lower() not in _NO_LAYER:
            return f"layers/{match[1]}/grad_norm"
    return f"layers/{tag}/weight_norm" if _PARAMETER.fullmatch(tag) else None
