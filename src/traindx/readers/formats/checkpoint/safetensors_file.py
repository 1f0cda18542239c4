"""Safetensors: a JSON header that says where each tensor stands, then the tensors."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any, BinaryIO

from traindx.model.run import Run
from traindx.readers.formats.checkpoint.assembled import (
    corrupt,
    listed,
    make_architecture,
    make_run,
)
from traindx.readers.formats.checkpoint.pickled_calls import MAX_DIMENSIONS, MAX_ELEMENTS
from traindx.readers.formats.checkpoint.storage import StoredTensor
from traindx.readers.formats.checkpoint.torch_file import why_no_checkpoint
from traindx.registry import reader

MAX_HEADER = 100 << 20  # as the format has it
_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64",
    "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32",
    "U64": "uint64", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "C64": "complex64",
}  # fmt: skip


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file is a safetensors file, whole or damaged."""
    is_named = path.suffix.lower() == ".safetensors"
    if len(head) > 9 and head[8:9] == b"{" and _length(head) <= MAX_HEADER:
        return 0.98 if is_named or b'"data_offsets"' in head else 0.0
    return 0.9 if is_named else 0.0


def _length(head: bytes) -> int:
    return int(struct.unpack("<Q", head[:8])[0])


@reader("safetensors", sniff)
def read(path: Path) -> Run:
    """Read the parameters with their statistics."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4096)
        file.seek(0)
        header, why = _header(file, size)
        why = why_no_checkpoint(head) or why
        if header is None:
            return make_run(path, "safetensors", events=[corrupt(path, why)])
        places, faults = _places(header, size)
        events = [corrupt(path, fault) for fault in faults]
        architecture = make_architecture(file, places, path, None, None)
        return make_run(path, "safetensors", architecture=architecture, events=events)


def _header(file: BinaryIO, size: int) -> tuple[dict[str, Any] | None, str]:
    """Return the header with the offset of the data under an empty name, or why there is none."""
    prefix = file.read(8)
    if len(prefix) < 8:
        return None, "it ends within the length of its header"
    length = _length(prefix)
    if length > MAX_HEADER:
        return None, f"its header claims {length} bytes, more than the format allows"
    if length + 8 > size:
        return None, f"it ends within its header: {size} of {length + 8} bytes"
    try:
        header = json.loads(file.read(length).decode("utf-8"))
    except (ValueError, RecursionError):
        return None, "its header is no JSON"
    if not isinstance(header, dict):
        return None, "its header is no JSON object"
    header[""] = length + 8
    return header, ""


def _places(header: dict[str, Any], size: int) -> tuple[list[StoredTensor], list[str]]:
    """Return where the tensors stand, and what is wrong with the table of them."""
    begin = header.pop("")
    places: list[StoredTensor] = []
    odd: list[str] = []
    short: list[str] = []
    end = begin
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        place, stop = _place(name, entry, begin)
        if place is None:
            odd.append(name[:200])
            continue
        end = max(end, stop)
        is_whole = stop <= size
        if not is_whole:
            short.append(place.name)
        places.append(place if is_whole else StoredTensor(place.name, place.dtype, place.shape))
    faults = []
    if short:
        faults.append(
            f"it ends early, {size} of {end} bytes: the data of {len(short)} tensors are cut short:"
            f" {listed(short)}"
        )
    if odd:
        faults.append(f"{len(odd)} entries of its header make no sense: {listed(odd)}")
    return places, faults


def _place(name: str, entry: Any, begin: int) -> tuple[StoredTensor | None, int]:
    if not isinstance(entry, dict):
        return None, 0
    shape: Any = entry.get("shape")
    span: Any = entry.get("data_offsets")
    kind = entry.get("dtype")
    if not _are_counts(shape) or not _are_counts(span) or len(span) != 2:
        return None, 0
    if not isinstance(kind, str) or math.prod(shape) > MAX_ELEMENTS or span[0] > span[1]:
        return None, 0
    place = StoredTensor(
        name[:500], _NAMES.get(kind, kind[:20].lower()), tuple(shape), begin + span[0]
    )
    if place.width and place.width * place.size != span[1] - span[0]:
        return None, 0
    return place, begin + span[1]


def _are_counts(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MAX_DIMENSIONS
        and all(type(n) is int and 0 <= n <= MAX_ELEMENTS for n in value)
    )
