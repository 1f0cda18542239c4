"""Files that torch.save wrote before 1.6, or writes on request: pickles, then the storages."""

from __future__ import annotations

import io
import struct
from typing import BinaryIO

from traindx.readers.formats.checkpoint.archive import MAX_PICKLE, Span, Unpacked
from traindx.readers.formats.checkpoint.opcodes import Unpickled, follow
from traindx.readers.formats.checkpoint.storage import item_size

MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # a pickled number that torch chose


def unpack(file: BinaryIO, size: int) -> Unpacked:
    """Read the parts one after another: a number, a version, the machine, the value, the keys."""
    file.seek(0)
    stream = io.BytesIO(file.read(min(MAX_PICKLE, size)))
    names: dict[str, None] = {}
    for part in ("its magic number", "its version", "its description of the machine"):
        step = follow(stream)
        names |= step.globals
        if step.problem:
            damage = [f"{part} is damaged: {step.problem}"]
            return Unpacked(Unpickled(globals=names), damage=damage, has_storages=False)
    value = follow(stream)
    value.globals = {**names, **value.globals}
    unpacked = Unpacked(value, has_storages=False)
    if value.problem and size > MAX_PICKLE:
        value.was_cut = True
        return unpacked
    if value.problem:
        unpacked.damage.append(f"its structure is damaged: {value.problem}")
        return unpacked
    keys = follow(stream)
    value.globals = {**value.globals, **keys.globals}
    if keys.problem or not isinstance(keys.value, list):
        unpacked.damage.append("it ends early: the list of its storages is missing")
        return unpacked
    unpacked.has_storages = True
    _find_storages(file, size, stream.tell(), [str(k) for k in keys.value], unpacked)
    return unpacked


def _find_storages(file: BinaryIO, size: int, at: int, keys: list[str], unpacked: Unpacked) -> None:
    """Note where each storage stands; its length precedes it."""
    for i, key in enumerate(keys):
        storage = unpacked.pickle.storages.get(key)
        width = item_size(storage.dtype) if storage is not None else 0
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            unpacked.damage.append(f"it ends early: {len(keys) - i} of its storages are missing")
            return
        count = struct.unpack("<q", head)[0]
        if storage is None or width == 0:
            if storage is not None:
                unpacked.has_storages = False  # a type of unknown width; what follows is not found
            return
        if count != storage.count:
            unpacked.damage.append(f"storage {key} has {count} numbers instead of {storage.count}")
            return
        if at + 8 + count * width > size:
            unpacked.damage.append(f"it ends within storage {i + 1} of {len(keys)}")
            return
        unpacked.spans[key] = Span(at + 8, count * width)
        at += 8 + count * width


def unpack_plain(file: BinaryIO, size: int) -> Unpacked:
    """Read a pickle that torch did not write."""
    file.seek(0)
    value = follow(file.read(min(MAX_PICKLE, size)))
    value.was_cut |= bool(value.problem) and size > MAX_PICKLE
    damage = [f"it is damaged: {value.problem}"] if value.problem and not value.was_cut else []
    return Unpacked(value, damage=damage, has_storages=False)
