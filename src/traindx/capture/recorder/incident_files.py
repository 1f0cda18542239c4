"""Keeps the batch and the random state of an incident: safetensors written by hand, no pickle."""

from __future__ import annotations

import json
import os
from collections import UserDict
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch

from .summaries import local_part

MAX_BYTES = 64 << 20
MAX_LEAVES = 2000
MAX_DEPTH = 8
MAX_TEXT = 10_000

DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "bool": "BOOL",
    "complex64": "C64",
}


def keep(
    folder: str,
    name: str,
    *,
    batch: object,
    rng_state: object,
    extra: Mapping[str, Any],
    max_bytes: int = MAX_BYTES,
) -> str:
    """Write what is needed to look at a step again; return its folder, or "" if that failed."""
    relative = f"incidents/{name}"
    try:
        target = Path(folder) / relative
        target.mkdir(parents=True, exist_ok=True)
        flat = Flat(batch)
        rows = cut_rows(flat.tensors, max_bytes)
        notes = list(flat.notes)
        if rows is not None:
            notes.append(f"the batch is too large; the first {rows} rows of it were kept")
        notes += save(target / "batch.safetensors", flat.tensors, max_bytes)
        notes += save(target / "rng.safetensors", _random_states(rng_state), max_bytes)
        told = {
            "batch": flat.structure,
            "values": flat.values,
            "rows_kept": rows,
            "notes": notes,
            "extra": as_json(extra),
        }
        text = json.dumps(told, indent=1, default=lambda value: f"({type(value).__name__})")
        (target / "incident.json").write_text(text, encoding="utf-8")
    except Exception:  # a full disk, a batch of a kind nobody thought of: the training goes on
        return ""
    return relative


class Flat:
    """A nested value as tensors and plain values by dotted name, with its structure."""

    def __init__(self, value: object) -> None:
        self.tensors: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.notes: list[str] = []
        self._count = 0
        self.structure = self._take("", value, 0)

    def _take(self, name: str, value: object, depth: int) -> Any:
        """Return the structure of a value, with the names of its leaves in their places."""
        self._count += 1
        if self._count > MAX_LEAVES or depth > MAX_DEPTH:
            self.notes.append(f"{name or 'the batch'}: too many values, or too deep")
            return None
        if issubclass(type(value), torch.Tensor):
            self.tensors[name or "tensor"] = value
            return {"tensor": name or "tensor"}
        if value is None or isinstance(value, (bool, int, float, str)):
            self.values[name or "value"] = value[:MAX_TEXT] if isinstance(value, str) else value
            return {"value": name or "value"}
        entries = entries_of(value)
        if entries is None:
            self.notes.append(f"{name or 'the batch'}: left out, a {type(value).__name__}")
            return {"type": type(value).__name__}
        prefix = f"{name}." if name else ""
        inner = [(key, self._take(f"{prefix}{key}", item, depth + 1)) for key, item in entries]
        if isinstance(value, (list, tuple)):
            return {"type": type(value).__name__, "items": [item for _, item in inner]}
        return {"type": type(value).__name__, "entries": {str(key): item for key, item in inner}}


def entries_of(value: object) -> list[tuple[Any, Any]] | None:
    """Return the entries of a container or of an object that holds a batch; None of others."""
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if isinstance(value, dict):
        return list(dict.items(value))
    if isinstance(value, UserDict):
        return list(value.data.items())
    if is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name, None)) for f in fields(value)]
    held = getattr(value, "__dict__", None)
    if type(held) is dict and any(issubclass(type(v), torch.Tensor) for v in held.values()):
        return [(key, item) for key, item in held.items() if not key.startswith("_")]
    return None


def as_json(value: object) -> Any:
    """Return a value with everything that JSON cannot hold replaced by words."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if issubclass(type(value), torch.Tensor):
        return f"(tensor of shape {list(value.shape)})"  # type: ignore[attr-defined]
    if isinstance(value, (list, tuple, set)):
        return [as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    return f"({type(value).__name__})"


# ---------------------------------------------------------------------------------------- cutting


def cut_rows(tensors: dict[str, Any], max_bytes: int) -> int | None:
    """Cut tensors, in place of the dict, to the first rows that fit; None if all fitted."""
    total = sum(_bytes(tensor) for tensor in tensors.values())
    if total <= max_bytes:
        return None
    lengths = [int(t.shape[0]) for t in tensors.values() if _has_rows(t)]
    if not lengths:
        return 0
    rows = max(set(lengths), key=lengths.count)
    batched = [key for key, t in tensors.items() if _has_rows(t) and int(t.shape[0]) == rows]
    fixed = sum(_bytes(t) for key, t in tensors.items() if key not in batched)
    per_row = max(1, sum(_bytes(tensors[key]) for key in batched) // max(1, rows))
    kept = max(0, min(rows, (max_bytes - fixed) // per_row))
    for key in batched:
        tensors[key] = tensors[key][:kept]
    return kept


def _has_rows(tensor: Any) -> bool:
    part = local_part(tensor)
    return part is not None and part is tensor and part.dim() > 0


def _bytes(tensor: Any) -> int:
    try:
        return int(tensor.numel()) * int(tensor.element_size())
    except Exception:  # a kind that has no size
        return 0


# ---------------------------------------------------------------------------------------- format


def save(path: Path, tensors: Mapping[str, Any], max_bytes: int = MAX_BYTES) -> list[str]:
    """Write tensors as safetensors; return a note for each that was left out."""
    notes: list[str] = []
    header: dict[str, Any] = {}
    chunks: list[Any] = []
    offset = 0
    for name, tensor in tensors.items():
        raw, why = _raw(tensor, max_bytes - offset)
        if raw is None:
            notes.append(f"{name}: left out, {why}")
            continue
        size = raw.numel()
        header[name] = {
            "dtype": DTYPES[str(tensor.dtype).replace("torch.", "")],
            "shape": [int(n) for n in tensor.shape],
            "data_offsets": [offset, offset + size],
        }
        chunks.append(raw)
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # readers map the file: aligned data is quicker
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for raw in chunks:
            for piece in _pieces(raw):
                file.write(piece)
    os.replace(partial, path)
    return notes


def _raw(tensor: Any, room: int) -> tuple[Any, str]:
    """Return the bytes of a tensor on the host, or why they cannot be had."""
    try:
        if str(tensor.dtype).replace("torch.", "") not in DTYPES:
            return None, f"its type is {tensor.dtype}"
        local = local_part(tensor)
        if local is None:
            return None, "sparse, sharded or without values"
        if local.shape != tensor.shape:
            return None, "only a part of it is in this process"
        if _bytes(local) > room:
            return None, "too large"
        plain = local.detach().resolve_conj().resolve_neg().to("cpu").contiguous()
        return plain.reshape(-1).view(torch.uint8), ""
    except Exception as error:
        return None, f"it cannot be read ({type(error).__name__})"


def _pieces(raw: Any, size: int = 1 << 20) -> Iterator[bytes]:
    """Yield the bytes of a tensor; numpy, where torch has it, does this without a list."""
    for start in range(0, raw.numel(), size):
        piece = raw[start : start + size].clone()
        try:
            yield piece.numpy().tobytes()
        except RuntimeError:  # torch without numpy
            yield bytes(piece.tolist())


def _random_states(rng_state: object) -> dict[str, Any]:
    states: dict[str, Any] = {}
    if issubclass(type(rng_state), torch.Tensor):
        states["cpu"] = rng_state
    elif isinstance(rng_state, Mapping):
        states.update({str(k): v for k, v in rng_state.items() if isinstance(v, torch.Tensor)})
    if "cuda" not in " ".join(states) and torch.cuda.is_available() and torch.cuda.is_initialized():
        for index, state in enumerate(torch.cuda.get_rng_state_all()):
            states[f"cuda.{index}"] = state
    return states
