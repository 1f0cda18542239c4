"""From what a file holds to a run: its parameters with statistics, its settings, its faults."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from traindx.model.run import Architecture, Artifact, Config, Event, Run, Setting, Tensor
from traindx.readers.formats.checkpoint.contents import Contents
from traindx.readers.formats.checkpoint.storage import (
    MAX_TOTAL,
    StoredTensor,
    measure,
    sample_limit,
)

_SHARD = re.compile(r"-\d+-of-(\d+)\.\w+$")
_COUNTED = re.compile(
    r"(?:^|[^a-z])(step|steps|iter|iteration|it|ckpt|checkpoint|epoch|ep|e)[-_=]?(\d{1,12})(?!\d)",
    re.IGNORECASE,
)
NAMED_AT_MOST = 6


def make_architecture(
    file: BinaryIO,
    places: Sequence[StoredTensor],
    path: Path,
    step: float | None,
    epoch: float | None,
) -> Architecture | None:
    """Return the parameters with their statistics, within the bound on what is read."""
    if not places:
        return None
    shard = _SHARD.search(path.name)
    total = MAX_TOTAL // max(1, int(shard[1][:6])) if shard else MAX_TOTAL
    limit = sample_limit([p.size for p in places], total)
    tensors = tuple(Tensor(p.name, p.shape, p.dtype, measure(file, p, limit)) for p in places)
    named = counters_in_name(path)
    return Architecture(
        tensors,
        str(path),
        step=step if step is not None else named.get("step"),
        epoch=epoch if epoch is not None else named.get("epoch"),
    )


def counters_in_name(path: Path) -> dict[str, float]:
    """Return the step and the epoch that the name of a file or of its folder tells."""
    found: dict[str, float] = {}
    for text in (path.name, path.parent.name):
        for word, digits in _COUNTED.findall(text):
            is_epoch = word.lower() in {"epoch", "ep", "e"}
            found.setdefault("epoch" if is_epoch else "step", float(digits))
    return found


def make_run(
    path: Path,
    reader: str,
    *,
    architecture: Architecture | None = None,
    contents: Contents | None = None,
    events: Iterable[Event] = (),
    warnings: Iterable[str] = (),
) -> Run:
    """Return the run that a checkpoint tells of."""
    label = str(path)
    events = tuple(events)
    said = tuple(warnings)
    told = contents.settings if contents is not None else []
    settings = tuple(Setting(k, v, label, k) for k, v in told if not _is_odd(v))
    return Run(
        name=path.stem,
        events=events + tuple(Event("warning", text, label) for text in said),
        config=Config(settings),
        architecture=architecture,
        artifacts=(Artifact(label, reader, tuple(e.text for e in events) + said),),
        checkpoints=(architecture,) if architecture is not None and _is_told(architecture) else (),
    )


def _is_told(architecture: Architecture) -> bool:
    """Of a file that was cut off only the names are known; it is no checkpoint to compare with."""
    return any(t.statistics for t in architecture.tensors)


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def corrupt(path: Path, why: str, locator: str = "") -> Event:
    """Return the event for a damaged file."""
    return Event("corrupt-checkpoint", why, str(path), locator)


def listed(names: Sequence[str]) -> str:
    """Return a few names in words."""
    shown = ", ".join(names[:NAMED_AT_MOST])
    return f"{shown} and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else shown
