"""Checkpoints in several files: an index that says which tensor stands in which of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traindx.model.run import Architecture, Event, Run, Tensor
from traindx.readers.formats.checkpoint import safetensors_file, torch_file
from traindx.readers.formats.checkpoint.assembled import corrupt, counters_in_name, listed, make_run
from traindx.registry import reader

NAME = "sharded checkpoint"
MAX_INDEX = 64 << 20
MAX_SHARDS = 2000


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file is the index of a sharded checkpoint."""
    is_named = path.name.endswith(".index.json")
    return 0.99 if is_named and head.lstrip()[:1] == b"{" and b'"weight_map"' in head else 0.0


@reader(NAME, sniff)
def read(path: Path) -> Run:
    """Read every shard that the index names, and say which tensors are missing."""
    shards = _index(path)
    if shards is None:
        return make_run(path, NAME, events=[corrupt(path, "it is no whole JSON document")])
    events: list[Event] = []
    tensors: dict[str, Tensor] = {}
    for name, wanted in shards.items():
        shard = path.parent / name
        if not _is_beside(name) or not shard.is_file():
            events.append(corrupt(path, f"the shard {name[:200]} is missing", "weight_map"))
            continue
        part = _read_shard(shard)
        events += [e for e in part.events if e.kind != "warning"]
        found = {t.name: t for t in part.architecture.tensors} if part.architecture else {}
        lacking = [n for n in wanted if n not in found]
        if lacking and not part.events:
            why = f"{name} lacks {len(lacking)} tensors of the index: {listed(lacking)}"
            events.append(corrupt(path, why, "weight_map"))
        tensors.update(found)
    named = counters_in_name(path)
    made = Architecture(
        tuple(tensors.values()), str(path), step=named.get("step"), epoch=named.get("epoch")
    )
    return make_run(path, NAME, architecture=made if tensors else None, events=events)


def _read_shard(path: Path) -> Run:
    is_safe = path.suffix.lower() == ".safetensors"
    return safetensors_file.read(path) if is_safe else torch_file.read(path)


def _is_beside(name: str) -> bool:
    """An index names files of its own folder; one that leads elsewhere is not followed."""
    return Path(name).name == name and name not in {"", ".", ".."}


def _index(path: Path) -> dict[str, list[str]] | None:
    """Return the tensors of each shard, or nothing if the index is damaged."""
    with path.open("rb") as file:
        data = file.read(MAX_INDEX + 1)
    try:
        index = json.loads(data[:MAX_INDEX])
    except (ValueError, RecursionError):
        return None
    shards: dict[str, list[str]] = {}
    for tensor, name in _entries(index):
        if name in shards or len(shards) < MAX_SHARDS:
            shards.setdefault(name, []).append(tensor)
    return shards


def _entries(index: Any) -> Iterator[tuple[str, str]]:
    table = index.get("weight_map") if isinstance(index, dict) else None
    for tensor, name in table.items() if isinstance(table, dict) else ():
        if isinstance(name, str):
            yield tensor, name
