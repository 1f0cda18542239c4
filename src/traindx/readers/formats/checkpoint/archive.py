"""The zip archives that torch.save writes: their directory, their pickle, and their storages.

The directory is parsed here rather than by `zipfile`, which would read whatever size the file
claims, and which gives up on a file that was cut off. The pickle stands first, so that of such a
file the names and shapes can still be told.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import BinaryIO

from traindx.readers.formats.checkpoint.opcodes import Unpickled, follow
from traindx.readers.formats.checkpoint.pickled_calls import Storage

MAX_DIRECTORY = 64 << 20  # a million entries
MAX_PICKLE = 128 << 20  # the structure of a checkpoint, without its tensors
MAGIC = b"PK\x03\x04"
_END = b"PK\x05\x06"
_END_64 = b"PK\x06\x06"
_LOCATOR_64 = b"PK\x06\x07"
_ENTRY = b"PK\x01\x02"
_STORED, _DEFLATED = 0, 8


class DamageError(Exception):
    """A file that breaks the rules of its format; the message says how."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a file; a compressed one has no start."""

    start: int | None
    size: int


@dataclass(slots=True)
class Unpacked:
    """What a file of torch.save holds, and what is wrong with it."""

    pickle: Unpickled
    spans: dict[str, Span] = field(default_factory=dict)
    byteorder: str = "<"
    damage: list[str] = field(default_factory=list)
    members: frozenset[str] = frozenset()
    has_storages: bool = True  # False where the place of the storages is unknown


@dataclass(frozen=True, slots=True)
class _Entry:
    method: int
    packed: int
    size: int
    header: int


def unpack(file: BinaryIO, size: int) -> Unpacked:
    """Read the structure of an archive; of a damaged one, what there is."""
    try:
        entries = _directory(file, size)
    except DamageError as error:
        return _salvage(file, size, str(error))
    pickles = [n for n in entries if n == "data.pkl" or n.endswith("/data.pkl")]
    if not pickles:
        return Unpacked(Unpickled(), damage=["the archive has no data.pkl"], has_storages=False)
    name = min(pickles, key=len)
    prefix = name.removesuffix("data.pkl")
    try:
        pickle = follow(_content(file, entries[name], size, MAX_PICKLE))
    except DamageError as error:
        return Unpacked(Unpickled(), damage=[f"{name}: {error}"], has_storages=False)
    unpacked = Unpacked(pickle, members=frozenset(n.removeprefix(prefix) for n in entries))
    if entries[name].size > MAX_PICKLE:
        pickle.was_cut = True
    elif pickle.problem:
        unpacked.damage.append(f"{name}: {pickle.problem}")
    _find_storages(file, size, entries, prefix, unpacked)
    return unpacked


def _find_storages(
    file: BinaryIO, size: int, entries: dict[str, _Entry], prefix: str, unpacked: Unpacked
) -> None:
    missing: list[Storage] = []
    for storage in unpacked.pickle.storages.values():
        entry = entries.get(f"{prefix}data/{storage.key}")
        if entry is None:
            missing.append(storage)
            continue
        try:
            start = _data_start(file, entry, size)
        except DamageError as error:
            unpacked.damage.append(f"{prefix}data/{storage.key}: {error}")
            continue
        is_plain = entry.method == _STORED
        unpacked.spans[storage.key] = Span(start if is_plain else None, entry.size)
    if missing:
        first = f"{prefix}data/{missing[0].key}"
        unpacked.damage.append(f"{len(missing)} storages are missing, the first is {first}")
    order = entries.get(f"{prefix}byteorder")
    if order is not None:
        try:
            unpacked.byteorder = ">" if _content(file, order, size, 16) == b"big" else "<"
        except DamageError as error:
            unpacked.damage.append(f"{prefix}byteorder: {error}")


def _salvage(file: BinaryIO, size: int, why: str) -> Unpacked:
    """Read the pickle of an archive without a directory: it is the first entry."""
    file.seek(0)
    head = file.read(30)
    name = b""
    if len(head) == 30 and head.startswith(MAGIC):
        length, extra = struct.unpack("<HH", head[26:30])
        name = file.read(length)
        file.seek(30 + length + extra)
    if not name.endswith(b"data.pkl") or struct.unpack("<H", head[8:10])[0] != _STORED:
        return Unpacked(Unpickled(), damage=[why], has_storages=False)
    pickle = follow(file.read(min(MAX_PICKLE, size)))
    return Unpacked(pickle, damage=[why], has_storages=False)


def _directory(file: BinaryIO, size: int) -> dict[str, _Entry]:
    start, length, count = _end_record(file, size)
    if length > MAX_DIRECTORY:
        raise DamageError("its zip directory is too long")
    file.seek(start)
    data = file.read(length)
    entries: dict[str, _Entry] = {}
    at = 0
    for _ in range(count):
        if data[at : at + 4] != _ENTRY or at + 46 > len(data):
            raise DamageError("its zip directory is damaged")
        method = struct.unpack_from("<H", data, at + 10)[0]
        packed, plain, n, m, k = struct.unpack_from("<IIHHH", data, at + 20)
        header = struct.unpack_from("<I", data, at + 42)[0]
        name = data[at + 46 : at + 46 + n].decode("utf-8", errors="replace")
        extra = data[at + 46 + n : at + 46 + n + m]
        plain, packed, header = _wide(extra, plain, packed, header)
        entries[name] = _Entry(method, packed, plain, header)
        at += 46 + n + m + k
    return entries


def _end_record(file: BinaryIO, size: int) -> tuple[int, int, int]:
    """Return where the directory begins, its length, and how many entries it has."""
    tail_start = max(0, size - (1 << 16) - 22)
    file.seek(tail_start)
    tail = file.read(size - tail_start)
    at = tail.rfind(_END)
    if at < 0 or at + 22 > len(tail):
        raise DamageError("it ends early: the zip directory, which stands at the end, is missing")
    count, length, start = struct.unpack_from("<HII", tail, at + 10)
    if at >= 20 and tail[at - 20 : at - 16] == _LOCATOR_64:
        where = struct.unpack_from("<Q", tail, at - 12)[0]
        if where > size:
            raise DamageError("its zip directory is damaged")
        file.seek(where)
        wide = file.read(56)
        if len(wide) < 56 or not wide.startswith(_END_64):
            raise DamageError("its zip directory is damaged")
        count, length, start = struct.unpack_from("<QQQ", wide, 32)
    if start + length > size:
        raise DamageError(
            "its zip directory lies beyond its end: the beginning of the file was lost"
        )
    return start, length, min(count, length // 46)


def _wide(extra: bytes, plain: int, packed: int, header: int) -> tuple[int, int, int]:
    """Replace the numbers that did not fit 32 bits by those of the zip64 field."""
    at = 0
    values = [plain, packed, header]
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        field_ = extra[at + 4 : at + 4 + length]
        if kind == 1:
            for i, value in enumerate(values):
                if value == 0xFFFFFFFF and len(field_) >= 8:
                    values[i] = struct.unpack_from("<Q", field_)[0]
                    field_ = field_[8:]
        at += 4 + length
    return values[0], values[1], values[2]


def _data_start(file: BinaryIO, entry: _Entry, size: int) -> int:
    if entry.header + 30 > size:
        raise DamageError("it lies beyond the end of the file")
    file.seek(entry.header)
    head = file.read(30)
    if not head.startswith(MAGIC):
        raise DamageError("its place in the file holds something else")
    length, extra = struct.unpack("<HH", head[26:30])
    start = int(entry.header + 30 + length + extra)
    if start + entry.packed > size:
        raise DamageError("it reaches beyond the end of the file")
    return start


def _content(file: BinaryIO, entry: _Entry, size: int, limit: int) -> bytes:
    """Return an entry whole, at most `limit` bytes of it, whatever it claims to unpack to."""
    start = _data_start(file, entry, size)
    if entry.method not in (_STORED, _DEFLATED):
        raise DamageError("it is packed in a way that torch does not write")
    file.seek(start)
    raw = file.read(min(entry.packed, limit))
    if entry.method == _STORED:
        return raw
    try:
        return zlib.decompressobj(-15).decompress(raw, limit)
    except zlib.error as error:
        raise DamageError(f"it does not unpack ({error})") from None
