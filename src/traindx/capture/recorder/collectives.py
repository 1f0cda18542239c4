"""What torch's flight recorder knows of the collectives of this rank."""

from __future__ import annotations

import json
import sys
from typing import Any

MOST = 64  # entries that are kept: a hang shows in the last few
LONGEST = 120  # characters of a name
MOST_SHAPES = 8  # tensors of one collective whose shapes are kept
SOURCES = ("_dump_fr_trace_json", "_dump_nccl_trace_json")  # any backend; NCCL's own


def dump() -> list[dict[str, Any]]:
    """Return the newest collectives, oldest first, after one entry per process group.

    It may be called from any thread, also while another one is blocked in a collective; where
    torch.distributed is not in use, or has nothing to tell, the list is empty.
    """
    try:
        return _dump()
    except Exception:
        return []


def _dump() -> list[dict[str, Any]]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return []
    native = sys.modules["torch"]._C._distributed_c10d
    groups: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    for name in SOURCES:
        told = _told_by(native, name)
        entries.extend(_entry(e) for e in told.get("entries") or [])
        groups.extend(_group(str(k), v) for k, v in (told.get("pg_status") or {}).items())
    entries.sort(key=lambda e: float(e["time_s"]))
    return groups[:MOST] + entries[-MOST:]


def _told_by(native: Any, name: str) -> dict[str, Any]:
    try:
        told = json.loads(getattr(native, name)())
    except Exception:  # this build or version of torch has no such source
        return {}
    return told if isinstance(told, dict) else {}


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    group = entry.get("process_group") or [entry.get("pg_id", "")]
    is_p2p = bool(entry.get("is_p2p"))
    return {
        "seq": entry.get("p2p_seq_id" if is_p2p else "collective_seq_id"),
        "op": str(entry.get("profiling_name", ""))[:LONGEST],
        "state": str(entry.get("state", "")),
        "is_retired": bool(entry.get("retired")),
        "is_p2p": is_p2p,
        "input_sizes": _shapes(entry.get("input_sizes")),
        "output_sizes": _shapes(entry.get("output_sizes")),
        "dtypes": [str(d) for d in (entry.get("input_dtypes") or [])[:MOST_SHAPES]],
        "group": str(entry.get("pg_id", group[0])),
        "group_name": str(group[-1])[:LONGEST],
        "time_s": float(entry.get("time_created_ns") or 0) / 1e9,
    }


def _shapes(shapes: Any) -> list[Any]:
    return list(shapes or [])[:MOST_SHAPES]


def _group(name: str, status: dict[str, Any]) -> dict[str, Any]:
    """Return how far a process group is; torch writes the numbers as text, −1 for unknown."""
    return {
        "group": name,
        "enqueued": int(status.get("last_enqueued_collective", -1)),
        "started": int(status.get("last_started_collective", -1)),
        "completed": int(status.get("last_completed_collective", -1)),
    }
