"""The data loaders of a process: what each one is, and how many batches a pass gave."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from math import cos
from typing import Any

import torch

from .places import user_place
from .summaries import local_part, spaced, summarise

MAX_TENSORS = 8
MAX_DEPTH = 4
PRINTED = 4096  # values of a batch that its fingerprint is made of
ROWS = 32
COLUMNS = 4096
MAX_EXAMPLES = 50_000
MAX_FIRST = 8  # passes of one loader whose first batch is looked at

_KNOWN_MAKERS = frozenset({"torch", "accelerate", "transformers", "lightning", "pytorch_lightning"})


class Loaders:
    """Follows the passes over each loader."""

    def __init__(self) -> None:
        self._ids: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._passes: dict[int, dict[str, Any]] = {}  # by the loader
        self._latest: dict[str, Any] = {"iterator": 0}  # the pass that gave the last batch
        self._looked: dict[int, int] = {}  # at first batches, by the loader
        self._since = 0  # steps that were there when the last batch came from another pass
        self.current: int | None = None
        self.untold: list[tuple[str, dict[str, Any]]] = []

    def begins(self, loader: Any, iterator: Any, steps: int) -> None:
        """Note a new pass, and the loader if it is new."""
        number = self._ids.get(loader)
        if number is None:
            number = self._ids[loader] = len(self._ids)
            self.untold.append(
                ("loader", {"id": number, "time_s": time.time(), **_describe(loader)})
            )
        self._end(number, steps, is_whole=False)
        self._passes[number] = {"iterator": id(iterator), "batches": 0, "begun": steps}

    def is_open(self) -> bool:
        """Tell whether a pass is under way that batches still come from."""
        return bool(self._passes) and self.current is not None

    def arrives(self, iterator: Any, batch: Any, steps: int) -> None:
        """Count a batch, and look at the first one of a pass."""
        if self._latest["iterator"] == id(iterator):
            self._latest["batches"] += 1
            return
        self._credit(steps)
        for number, current in self._passes.items():
            if current["iterator"] == id(iterator):
                current["batches"] += 1
                self.current, self._latest = number, current
                if current["batches"] == 1:
                    self._look(number, current, batch)
                return
        self.current, self._latest = None, {"iterator": 0}

    def _credit(self, steps: int) -> None:
        """Note the steps that were taken since the last batch came from another pass."""
        self._latest["own"] = self._latest.get("own", 0) + steps - self._since
        self._since = steps

    def _look(self, number: int, current: dict[str, Any], batch: Any) -> None:
        looked = self._looked.get(number, 0)
        if looked < MAX_FIRST:
            self._looked[number] = looked + 1
            current["first"] = summaries(batch)

    def ends(self, iterator: Any, steps: int) -> None:
        """Note that a pass is over."""
        for number, current in list(self._passes.items()):
            if current["iterator"] == id(iterator):
                self._end(number, steps, is_whole=True)

    def _end(self, number: int, steps: int, *, is_whole: bool) -> None:
        current = self._passes.pop(number, None)
        if current is self._latest:
            self._credit(steps)
            self._latest = {"iterator": 0}  # another one may come to be where it was
        if current is not None and current["batches"]:
            epoch = {
                "loader": number,
                "batches": current["batches"],
                "step": steps,
                "is_whole": is_whole,
                "trained": steps - current["begun"],
                "own": current.get("own", 0),
                "time_s": time.time(),
                **({"first": current["first"]} if current.get("first") else {}),
            }
            self.untold.append(("epoch", epoch))


def _describe(loader: Any) -> dict[str, Any]:
    batches = getattr(loader, "batch_sampler", None)
    # beside a batch sampler that was given, the loader's own has no say
    sampler = getattr(batches, "sampler", getattr(loader, "sampler", None))
    name = type(sampler).__name__
    shuffle = getattr(sampler, "shuffle", None)  # of a DistributedSampler
    is_shuffled = bool(shuffle) if isinstance(shuffle, bool) else "Random" in name
    if type(batches).__name__ not in ("BatchSampler", "NoneType"):
        name, is_shuffled = type(batches).__name__, True  # a stranger's: not known to be in order
    return {
        "dataset": type(getattr(loader, "dataset", None)).__name__,
        "size": _length(getattr(loader, "dataset", None)),
        "batches": _length(loader) if _is_plain(loader) else None,
        "batch_size": getattr(loader, "batch_size", None),
        "sampler": name,
        "is_shuffled": is_shuffled,
        "workers": getattr(loader, "num_workers", 0),
        "drop_last": bool(getattr(loader, "drop_last", False)),
        "place": user_place(),
    }


def _is_plain(loader: Any) -> bool:
    """Tell whether the number of batches can be asked for, and no code of the user's is run.

    Of an iterable data set, torch would remember the answer and warn when it was not right.
    """
    if isinstance(getattr(loader, "dataset", None), torch.utils.data.IterableDataset):
        return False
    samplers = (getattr(loader, name, None) for name in ("sampler", "batch_sampler"))
    makers = {type(s).__module__.partition(".")[0] for s in (loader, *samplers) if s is not None}
    return makers <= _KNOWN_MAKERS


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except Exception:  # an iterable data set has none
        return None


def tensors(batch: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a batch with their names: ``0``, ``1.input_ids``."""
    if isinstance(batch, torch.Tensor):
        yield name or "0", batch
    elif depth < MAX_DEPTH:
        items: Any = ()
        if isinstance(batch, (list, tuple)):
            items = list(enumerate(batch))
        elif callable(getattr(type(batch), "items", None)):
            items = list(batch.items())
        elif type(batch).__module__ != "builtins":
            items = list(_attributes(batch).items())
        for key, value in items[:64]:
            yield from tensors(value, f"{name}.{key}" if name else str(key), depth + 1)


def _attributes(batch: Any) -> dict[Any, Any]:
    try:
        return dict(object.__getattribute__(batch, "__dict__"))
    except Exception:  # it has none, or none that is one
        return {}


Known = dict[int, "dict[str, Any]"]  # by the identity of tensors that are held meanwhile


def summaries(batch: Any, known: Known | None = None) -> list[dict[str, Any]]:
    """Return what the tensors of a batch look like; what is known of them is not asked again."""
    known = {} if known is None else known
    found = []
    for _, (name, tensor) in zip(range(MAX_TENSORS), tensors(batch)):
        if id(tensor) not in known:
            known[id(tensor)] = {**summarise(tensor, name), "spread": _spread(tensor)}
        found.append({**known[id(tensor)], "name": name})
    return found


def _spread(tensor: torch.Tensor) -> float | None:
    """Return how far the examples of a batch differ: 0 if each is like the first."""
    local = local_part(tensor)
    if local is None or local.dim() < 2 or len(local) < 2 or local.is_complex():
        return None
    rows = local[:ROWS].detach().reshape(min(len(local), ROWS), -1)
    rows = rows[:, :: -(-rows.shape[1] // COLUMNS) or 1].double()
    return float((rows - rows[0]).abs().mean())


def batch_size(batch: Any) -> int | None:
    """Return the number of examples: the first dimension of the first tensor that has one."""
    first = batch[0] if type(batch) in (list, tuple) and batch else batch
    if type(first) is torch.Tensor and first.dim():
        return int(first.size(0))  # by far the most frequent, at every step
    for _, tensor in tensors(batch):
        if tensor.dim():
            return int(tensor.size(0))
    return None


def fingerprint(batch: Any) -> float | None:
    """Return a number that two batches share only if they hold the same values."""
    total, found = 0.0, False
    for i, (_, tensor) in enumerate(tensors(batch)):
        local = local_part(tensor)
        if i >= MAX_TENSORS or local is None or local.numel() == 0:
            continue
        values = spaced(local, PRINTED).double().cpu()
        total += cos(i) * float((values * _weights(values.numel())).sum())
        found = True
    return total if found else None


_made: dict[int, torch.Tensor] = {}


def _weights(count: int) -> torch.Tensor:
    if count not in _made:
        if len(_made) > 64:
            _made.clear()
        _made[count] = torch.cos(0.7 * torch.arange(count, dtype=torch.float64, device="cpu") + 0.3)
    return _made[count]


class LabelMemory:
    """Remembers which label an example came with, to notice when it comes with another one."""

    def __init__(self) -> None:
        self._labels: dict[float, int] = {}

    def meet(self, batch: Any) -> tuple[int, int]:
        """Return how many examples came before with the same label, and with another one."""
        pair = _inputs_and_labels(batch)
        if pair is None:
            return 0, 0
        same = other = 0
        for example, label in zip(*pair):
            known = self._labels.get(example)
            if known is None:
                if len(self._labels) < MAX_EXAMPLES:
                    self._labels[example] = label
            elif known == label:
                same += 1
            else:
                other += 1
        return same, other


def _is_whole(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex()


def _inputs_and_labels(batch: Any) -> tuple[list[float], list[int]] | None:
    given = (t for _, (_, t) in zip(range(MAX_TENSORS), tensors(batch)))
    found = [t for t in given if not t.is_nested]
    inputs = next((t for t in found if t.is_floating_point() and t.dim() > 1), None)
    labels = next((t for t in found if _is_whole(t) and t.dim() == 1), None)
    if inputs is None or labels is None or len(inputs) != len(labels):
        return None
    local = local_part(inputs)
    if local is None or local.device.type != "cpu" or labels.device.type != "cpu":
        return None
    rows = local[:ROWS].detach().reshape(min(len(local), ROWS), -1)
    rows = rows[:, :: -(-rows.shape[1] // COLUMNS) or 1].double()
    prints = (rows * _weights(rows.shape[1])).sum(1)
    is_told = rows.std(1, unbiased=False) > 0  # an empty example is like any other empty one
    keep = is_told.tolist()
    pairs = zip(prints.tolist(), labels[:ROWS].tolist(), keep)
    chosen = [(p, int(label)) for p, label, told in pairs if told]
    return [p for p, _ in chosen], [label for _, label in chosen]
