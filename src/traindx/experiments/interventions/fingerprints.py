"""Notes which examples each data loader gives, so that training and validation can be compared.

Changes nothing: batches are looked at as they pass. Loaders that nobody has asked for a batch by
the first step are looked into once, with the random state put back afterwards.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, Subset
from torch.utils.data import dataloader as loader_module

from . import moments

MAX_LOADERS = 24
MAX_ROWS = 20_000  # of one loader
PEEKED_ROWS = 512
PEEK_S = 3.0
MAX_INDICES = 2_000_000
SHOWN_INDICES = 20_000
MAX_BYTES = 1 << 16  # of one example; a larger one is known by evenly spaced values
WRITTEN_AT = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class _Pass:
    """One pass over a loader: whether it was completed, and the steps that its batches fed."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.batches = self.trained = 0
        self.is_whole = False
        self.after: int | None = None  # the loader that was trained from last


class _Seen:
    """What is known of one loader."""

    def __init__(self, number: int, loader: Any) -> None:
        self.number = number
        self.loader = loader  # kept, so that its number stays its own
        self.passes: list[_Pass] = []
        self.rows: dict[str, int] = {}
        self.met = 0  # rows of the first pass, and …
        self.repeated = 0  # … those that came before in it
        self.is_peeked = False


class Fingerprints:
    """Follows the loaders of this process."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._iterators: dict[int, tuple[_Seen, _Pass]] = {}
        self._since_step: dict[int, tuple[_Seen, _Pass]] = {}
        self._order = 0
        self._steps = 0
        self._trained: int | None = None
        self._pid = os.getpid()

    def begins(self, loader: Any, iterator: Any) -> None:
        """Note a new pass."""
        seen = self._known(loader)
        if seen is None:
            return
        self._order += 1
        current = _Pass(self._order)
        current.after = self._trained
        seen.passes.append(current)
        self._iterators[id(iterator)] = (seen, current)

    def _known(self, loader: Any) -> _Seen | None:
        seen = self._seen.get(id(loader))
        if seen is None and len(self._seen) < MAX_LOADERS:
            seen = self._seen[id(loader)] = _Seen(len(self._seen), loader)
        return seen

    def arrives(self, iterator: Any, batch: Any) -> None:
        """Take in the examples of a batch."""
        pair = self._iterators.get(id(iterator))
        if pair is None:
            return
        seen, current = pair
        self._end_counted(seen)
        current.batches += 1
        self._since_step[id(iterator)] = pair
        is_first = len(seen.passes) == 1
        for row in row_prints(batch):
            if is_first:
                seen.met += 1
                seen.repeated += row in seen.rows
            if len(seen.rows) < MAX_ROWS:
                seen.rows.setdefault(row, current.order)

    def _end_counted(self, seen: _Seen) -> None:
        """End the passes that gave all of their batches: Lightning asks for no more than those.

        Several of them without a step were no training, so that the next step is not theirs.
        """
        for key, (other, one) in list(self._since_step.items()):
            is_all = one.batches > 1 and one.batches == _length(other.loader)
            if other is not seen and is_all and not one.trained:
                one.is_whole = True
                del self._since_step[key]

    def ends(self, iterator: Any) -> None:
        """Note that a pass is over; what it gave feeds no later step."""
        pair = self._iterators.pop(id(iterator), None)
        if pair is not None:
            pair[1].is_whole = True
            self._since_step.pop(id(iterator), None)
            if self._steps and not pair[1].trained:
                self.write()  # what comes next may be the end

    def stepped(self) -> None:
        """Note an optimizer step: the batches since the last one fed it."""
        for seen, current in self._since_step.values():
            current.trained += 1
            self._trained = seen.number
        fed = {seen.number for seen, _ in self._since_step.values()}
        self._since_step.clear()
        self._steps += 1
        if self._steps == 1:
            self._peek(fed)
        if self._steps in WRITTEN_AT:
            self.write()

    def _peek(self, fed: set[int]) -> None:
        """Look into the loaders that have not been asked yet: validation comes late."""
        deadline = time.monotonic() + PEEK_S
        waiting = [o for o in gc.get_objects() if issubclass(type(o), DataLoader)]
        state = _random_state()
        try:
            for loader in waiting:
                seen = self._known(loader)
                if seen is None or seen.number in fed or seen.rows:
                    continue
                seen.is_peeked = True
                for row in _peeked(loader, deadline):
                    seen.rows.setdefault(row, 0)
        finally:
            _restore(state)

    def write(self) -> None:
        """Write what is known to the folder of the recording."""
        folder = os.environ.get("TRAINDX_RECORDING", "")
        if not folder or os.getpid() != self._pid:
            return
        told = [_told(seen) for seen in self._seen.values()]
        target = Path(folder, f".fingerprints-{self._pid}")  # hidden: no part of the run itself
        draft = target.with_suffix(".draft")
        draft.write_text(json.dumps({"steps": self._steps, "loaders": told}), encoding="utf-8")
        draft.replace(target)


def _told(seen: _Seen) -> dict[str, Any]:
    loader = seen.loader
    sampler = getattr(loader, "sampler", None)
    dataset, indices = _indices(loader)
    return {
        "id": seen.number,
        "dataset": dataset,
        "size": _length(getattr(loader, "dataset", None)),
        "is_shuffled": "Random" in type(sampler).__name__,
        "is_plain": _is_plain(loader),
        "has_replacement": bool(getattr(sampler, "replacement", False)),
        "indices": indices,
        "is_peeked": seen.is_peeked,
        "met": seen.met,
        "repeated": seen.repeated,
        "rows": seen.rows,
        "passes": [
            {
                "order": p.order,
                "batches": p.batches,
                "trained": p.trained,
                "is_whole": p.is_whole,
                "after": p.after,
            }
            for p in seen.passes
        ],
    }


def _indices(loader: Any) -> tuple[int, list[int] | None]:
    """Return whose examples a loader reads, and which: None means all of them."""
    dataset: Any = getattr(loader, "dataset", None)
    chosen: list[int] | None = None
    sampled = getattr(getattr(loader, "sampler", None), "indices", None)
    if sampled is not None and _length(sampled) is not None and len(sampled) <= MAX_INDICES:
        chosen = [int(i) for i in sampled]
    while type(dataset) is Subset and len(dataset.indices) <= MAX_INDICES:
        own = [int(i) for i in dataset.indices]
        chosen = own if chosen is None else [own[i] for i in chosen]
        dataset = dataset.dataset
    if chosen is not None:
        every = (_length(dataset) or 0) // SHOWN_INDICES + 1  # the same for all that share it
        chosen = [i for i in chosen if i % every == 0]
    return id(dataset), chosen


def _is_plain(loader: Any) -> bool:
    """Tell whether the order is torch's own, so that nothing but the indices selects."""
    names = (type(getattr(loader, "sampler", None)).__name__,
             type(getattr(loader, "batch_sampler", None)).__name__)  # fmt: skip
    own = ("SequentialSampler", "RandomSampler", "SubsetRandomSampler")
    return names[0] in own and names[1] == "BatchSampler"


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except Exception:  # an iterable data set has none
        return None


def _peeked(loader: Any, deadline: float) -> Iterator[str]:
    dataset = loader.dataset
    size = _length(dataset)
    if isinstance(dataset, IterableDataset) or not size or loader.batch_sampler is None:
        return
    for start in range(0, min(size, PEEKED_ROWS), 16):
        if time.monotonic() > deadline:
            return
        items = [dataset[i] for i in range(start, min(start + 16, size, PEEKED_ROWS))]
        yield from row_prints(loader.collate_fn(items))


def row_prints(batch: Any) -> list[str]:
    """Return a mark of each example by the largest tensor of the batch; empty ones are left out."""
    found = [t for t in _tensors(batch, 0) if _is_readable(t)]
    rows = max((len(t) for t in found), default=0)
    tables = [t for t in found if len(t) == rows and t[0].numel() > 1]
    if not tables:
        return []
    table = max(tables, key=lambda t: t[0].numel())
    flat = table.detach().reshape(rows, -1)
    stride = -(-flat.shape[1] * flat.element_size() // MAX_BYTES)
    flat = flat[:, ::stride] if stride > 1 else flat
    if not flat.is_floating_point():
        return [_mark(_without_ends(row)) for row in flat if not _is_constant(row)]
    return [_mark(row) for row in flat if not _is_constant(row)]


def _mark(row: torch.Tensor) -> str:
    data = bytes(row.contiguous().view(torch.uint8).tolist())
    return blake2b(data, digest_size=8).hexdigest()


def _is_constant(row: torch.Tensor) -> bool:
    """An empty example is like any other empty one."""
    return bool((row == row[0]).all())


def _without_ends(row: torch.Tensor) -> torch.Tensor:
    """Return a row without its padding, which depends on the rest of the batch."""
    if row.dtype is torch.bool:
        return row
    changes = (row[1:] != row[:-1]).nonzero().flatten()
    return row[int(changes[0]) : int(changes[-1]) + 2]


def _is_readable(tensor: torch.Tensor) -> bool:
    is_plain = (
        tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_complex()
    )
    return is_plain and tensor.device.type == "cpu" and tensor.dim() > 0 and len(tensor) > 0


def _tensors(batch: Any, depth: int) -> Iterator[torch.Tensor]:
    """Yield the tensors of plain containers; an object of its own may hold a graph, not rows."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif depth < 4 and isinstance(batch, Mapping):
        for value in list(batch.values())[:64]:
            yield from _tensors(value, depth + 1)
    elif depth < 4 and isinstance(batch, (list, tuple)):
        for value in batch[:64]:
            yield from _tensors(value, depth + 1)


def _random_state() -> list[Any]:
    numpy = sys.modules.get("numpy")
    state = numpy.random.get_state() if numpy is not None else None
    return [random.getstate(), torch.get_rng_state(), state]


def _restore(state: list[Any]) -> None:
    random.setstate(state[0])
    torch.set_rng_state(state[1])
    if state[2] is not None:
        sys.modules["numpy"].random.set_state(state[2])


def apply(values: Any, report: Any) -> None:
    """Begin to note examples."""
    noted = Fingerprints()
    begins, arrives = report.guard(noted.begins), report.guard(noted.arrives)
    ends = report.guard(noted.ends)
    iterate, following = DataLoader.__iter__, loader_module._BaseDataLoaderIter.__next__

    @functools.wraps(iterate)
    def begin(loader: Any) -> Any:
        iterator = iterate(loader)
        begins(loader, iterator)
        return iterator

    @functools.wraps(following)
    def next_batch(iterator: Any) -> Any:
        try:
            batch = following(iterator)
        except StopIteration:
            ends(iterator)
            raise
        arrives(iterator, batch)
        return batch

    DataLoader.__iter__ = begin
    loader_module._BaseDataLoaderIter.__next__ = next_batch
    moments.on("step_ends", report, lambda _: noted.stepped())
    moments.at_end(report.guard(noted.write))
    atexit.register(report.guard(noted.write))
