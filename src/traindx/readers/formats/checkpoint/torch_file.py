"""Files of torch.save, zipped or in the old format: `.pt`, `.pth`, `.ckpt`, `.bin`.

Nothing in them is executed or imported, so a file that runs code on loading can be described like
any other, and torch is not needed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

from traindx.model.run import Event, Run
from traindx.readers.formats.checkpoint import archive, legacy
from traindx.readers.formats.checkpoint.archive import Unpacked
from traindx.readers.formats.checkpoint.assembled import (
    corrupt,
    listed,
    make_architecture,
    make_run,
)
from traindx.readers.formats.checkpoint.contents import Contents, understand
from traindx.readers.formats.checkpoint.danger import judge
from traindx.readers.formats.checkpoint.pickled_calls import Stored
from traindx.readers.formats.checkpoint.storage import StoredTensor, item_size
from traindx.readers.text import is_text
from traindx.registry import reader

SUFFIXES = frozenset({".pt", ".pth", ".ckpt", ".pt2", ".safetensors"})
POINTER = b"version https://git-lfs"
_BIN = re.compile(
    r"(?:pytorch_model|adapter_model|optimizer|scheduler|training_args|scaler)[\w-]*\.bin$"
)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_PAGE = (b"<!doctype", b"<html", b"<?xml")


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file is a checkpoint of torch, whole or damaged."""
    is_named = path.suffix.lower() in SUFFIXES - {".safetensors"} or bool(_BIN.search(path.name))
    if head.startswith(archive.MAGIC):
        return 0.98 if b"data.pkl" in head[:4096] else 0.9 if is_named else 0.0
    if head.startswith(legacy.MAGIC):
        return 0.98
    if not is_named:
        return 0.0
    if _PICKLE.match(head):
        return 0.9
    if why_no_checkpoint(head) and (head or path.suffix.lower() != ".bin"):
        return 0.9
    # path files of Python are called `.pth` too, and TensorFlow's checkpoints `.ckpt`
    is_binary = not is_text(head) and path.suffix.lower() in {".pt", ".pth"}
    return 0.6 if is_binary else 0.0


def why_no_checkpoint(head: bytes) -> str:
    """Say what stands in the place of a checkpoint, where that can be told."""
    if not head:
        return "it is empty: the disk was full, or the run was killed as it began to save"
    if head.startswith(POINTER):
        return "it is a git-lfs pointer in place of the file; fetch it with `git lfs pull`"
    if head.lstrip()[:9].lower().startswith(_PAGE):
        return "it is a web page in place of the file; the download failed"
    if not head.strip(b"\0"):
        return "it is filled with zeros: space was reserved for it and never written"
    return ""


@reader("checkpoint", sniff)
def read(path: Path) -> Run:
    """Read the parameters, the state of the training and the configuration, executing nothing."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4096)
        why = why_no_checkpoint(head)
        if why:
            return make_run(path, "checkpoint", events=[corrupt(path, why)])
        if head.startswith(archive.MAGIC):
            unpacked = archive.unpack(file, size)
        elif head.startswith(legacy.MAGIC):
            unpacked = legacy.unpack(file, size)
        elif _PICKLE.match(head):
            unpacked = legacy.unpack_plain(file, size)
        else:
            why = "it begins like no checkpoint: neither a zip archive nor a pickle"
            return make_run(path, "checkpoint", events=[corrupt(path, why)])
        return _make(path, file, unpacked)


def _make(path: Path, file: BinaryIO, unpacked: Unpacked) -> Run:
    contents = understand(unpacked.pickle.value)
    if unpacked.damage or unpacked.pickle.was_cut:  # what is missing may have been lost
        contents.settings = [(k, v) for k, v in contents.settings if v is not False]
    places, short = _locate(contents, unpacked)
    if short and not any("missing" in d or "ends" in d for d in unpacked.damage):
        unpacked.damage.append(f"the data of {len(short)} tensors are cut short: {listed(short)}")
    events = [corrupt(path, why, _place(why)) for why in unpacked.damage[:5]]
    events += _refusals(path, unpacked)
    architecture = make_architecture(file, places, path, contents.step, contents.epoch)
    warnings = ["only the beginning of its structure was read"] if unpacked.pickle.was_cut else []
    return make_run(
        path,
        "checkpoint",
        architecture=architecture,
        contents=contents,
        events=events,
        warnings=warnings,
    )


def _place(why: str) -> str:
    return why.partition(": ")[0] if "/" in why.partition(": ")[0] else ""


def _locate(contents: Contents, unpacked: Unpacked) -> tuple[list[StoredTensor], list[str]]:
    """Return where the model's tensors stand, and which of them reach beyond their data."""
    places: list[StoredTensor] = []
    short: list[str] = []
    seen: set[tuple[str, int, tuple[int, ...]]] = set()
    for name, tensor in contents.tensors:
        start, is_whole = _start(tensor, unpacked)
        if not is_whole:
            short.append(name)
        strides = _row_major(tensor.shape)
        is_alias = False
        if tensor.storage is not None:
            identity = (tensor.storage.key, tensor.offset, tensor.shape)
            is_alias = identity in seen
            seen.add(identity)
        places.append(
            StoredTensor(
                name,
                tensor.dtype,
                tensor.shape,
                start if _is_dense(tensor) else None,
                tensor.stride == strides,
                is_alias,
                unpacked.byteorder,
            )
        )
    return places, short


def _start(tensor: Stored, unpacked: Unpacked) -> tuple[int | None, bool]:
    """Return where a tensor begins in the file, and whether all of it is there."""
    if tensor.storage is None or not unpacked.has_storages or tensor.size == 0:
        return None, True
    span = unpacked.spans.get(tensor.storage.key)
    width = item_size(tensor.dtype)
    if span is None or width == 0:
        return None, span is not None or width == 0
    reach = tensor.offset + 1
    reach += sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride, strict=True))
    if reach * width > span.size:
        return None, False
    return None if span.start is None else span.start + tensor.offset * width, True


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * n)
    return tuple(reversed(strides)) if shape else ()


def _is_dense(tensor: Stored) -> bool:
    """Tell whether a tensor fills a stretch of its storage, in whatever order of its axes."""
    reach = 1
    for stride, n in sorted(zip(tensor.stride, tensor.shape, strict=False)):
        if n > 1:
            if stride != reach:
                return False
            reach *= n
    return True


def _refusals(path: Path, unpacked: Unpacked) -> list[Event]:
    """Say which names in the file keep torch from loading it safely."""
    names = judge(unpacked.pickle.globals)
    if names.dangerous:
        text = (
            f"loading it would run code: it refers to {listed(names.dangerous)};"
            " nothing of it was executed here, do not load it"
        )
        return [Event("unsafe-checkpoint", text, str(path), "data.pkl")]
    if not names.unsupported:
        return []
    if any(n.startswith("__torch__.") for n in names.unsupported) or "constants.pkl" in (
        unpacked.members
    ):
        text = "it is a TorchScript archive: load it with `torch.jit.load`, not with `torch.load`"
        return [Event("unloadable-checkpoint", text, str(path), "data.pkl")]
    text = (
        f"`torch.load(weights_only=True)`, the default since torch 2.6, refuses it for"
        f" {listed(names.unsupported)}; {_advice(names.unsupported)}"
    )
    return [Event("unloadable-checkpoint", text, str(path), "data.pkl")]


def _advice(names: tuple[str, ...]) -> str:
    if all(n.startswith(("numpy.", "_codecs.")) for n in names):
        return "save plain numbers instead, such as `float(best_loss)`"
    if any(n == "argparse.Namespace" for n in names):
        return "save `vars(args)` instead of the object"
    if any(".modules." in n for n in names):
        return "save `model.state_dict()` instead of the module"
    return "save plain values, or allow just these names with `torch.serialization.safe_globals`"
