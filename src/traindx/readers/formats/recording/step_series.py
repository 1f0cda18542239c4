"""Metrics over the steps of a recorded process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from traindx.model.recording import Epoch, Process, Sample
from traindx.model.run import Floats, Ints, Origin, Series
from traindx.readers.formats.recording.process_file import ProcessRecords
from traindx.readers.formats.recording.steps import Steps

MAX_LAYERS = 400  # parameters with curves of their own; the samples keep them all
OWNS = 0.5  # share of an optimizer's steps that follow a backward pass of their own
STANDS_OUT = 6.0  # usual deviations; an extreme of some steps within them is noise
_TIMES = {
    "time/data": "data_s",
    "time/forward": "forward_s",
    "time/backward": "backward_s",
    "time/optimizer": "optimizer_s",
    "time/step": "total_s",
}

Mask = NDArray[np.bool_]


def curves_of(told: ProcessRecords, prefix: str, *, with_layers: bool) -> list[Series]:
    """Return the metrics of a process under a prefix, those of its layers if asked for."""
    maker = _Curves(told)
    made = [*maker.losses(), *maker.rates(), *maker.norms(), *maker.times(), *maker.memory()]
    if with_layers:
        made += maker.layers()
    kept = [series for series in made if len(series)]
    return [series.renamed(prefix + series.name) for series in kept] if prefix else kept


def own_losses(steps: Steps) -> list[int]:
    """Return the optimizers that step on a loss of their own, the first one first.

    A second optimizer on the same loss steps without a backward pass in between.
    """
    found = []
    for number in np.unique(steps["optimizer"]):
        rows = steps["optimizer"] == number
        if float(np.mean(_is_own(steps)[rows])) >= OWNS:
            found.append(int(number))
    return found


def _is_own(steps: Steps) -> Mask:
    micro = steps["micro"]
    has_loss = steps["has_loss"] > 0
    return np.asarray(has_loss & ((micro > 0) | np.isnan(micro)))


def optimizer_labels(process: Process, numbers: Sequence[int]) -> dict[int, str]:
    """Name optimizers after the models they train, or by their type and number."""
    types = {o.id: o.type for o in process.optimizers}
    plain = {n: f"{types.get(n, '').lower() or 'optimizer'}{n}" for n in numbers}
    trained: dict[int, set[str]] = {n: set() for n in numbers}
    for model in {m.id: m for m in process.models}.values():
        owners = {p.optimizer for p in model.parameters}
        for number in owners.intersection(numbers):
            trained[number or 0].add(model.type.lower())
    names = [next(iter(types)) for types in trained.values() if len(types) == 1]
    is_telling = len(set(names)) == len(numbers) and all(name.isidentifier() for name in names)
    return dict(zip(numbers, names, strict=True)) if is_telling else plain


class _Curves:
    def __init__(self, told: ProcessRecords) -> None:
        self.told = told
        # with two optimizers, the passes over the data count the steps of both
        is_one = len(np.unique(told.steps["optimizer"])) < 2
        self._passes = told.process.epochs if is_one else ()

    def _make(self, name: str, called: str, steps: Floats, values: Floats, lines: Floats) -> Series:
        origin = Origin(self.told.process.path, called)
        places: Ints = lines.astype(np.int64)
        epochs = epochs_at(steps, self._passes)
        return Series(name, values, steps, origin, "step", epochs, places)

    def _column(self, name: str, column: str, keep: Mask, called: str = "") -> Series:
        steps = self.told.steps
        return self._make(
            name, called or column, steps["step"][keep], steps[column][keep], steps["line"][keep]
        )

    def losses(self) -> Iterator[Series]:
        steps = self.told.steps
        owners = own_losses(steps)
        labels = optimizer_labels(self.told.process, owners)
        for owner in owners:
            keep = (steps["optimizer"] == owner) & _is_own(steps)
            alone = len(owners) == 1
            name = "loss/train" if alone else f"loss/train/{labels[owner]}"
            yield self._loss(name, "loss" if alone else f"loss of {labels[owner]}", keep)

    def _loss(self, name: str, called: str, keep: Mask) -> Series:
        """Return a loss; of rows that stand for several steps, with what stands out in them."""
        steps = self.told.steps
        at, values, lines = steps["step"][keep], steps["loss"][keep], steps["line"][keep]
        stride = steps["stride"][keep]
        if not (stride > 1).any():
            return self._make(name, called, at, values, lines)
        extra_at, extra, extra_lines = [at], [values], [lines]
        before = np.concatenate([values[:1], values[:-1]])
        for column, sign, share in (("loss_low", -1.0, 2 / 3), ("loss_high", 1.0, 1 / 3)):
            extreme = steps[column][keep]
            out = _stands_out(sign * extreme, sign * values, sign * before) & (stride > 1)
            extra_at.append(_within(at, stride, share)[out])
            extra.append(extreme[out])
            extra_lines.append(lines[out])
        broken = (steps["nonfinite"][keep] > 0) & np.isfinite(values) & (stride > 1)
        extra_at.append(_within(at, stride, 0.5)[broken])
        extra.append(np.full(int(broken.sum()), np.nan))
        extra_lines.append(lines[broken])
        every = np.concatenate(extra_at)
        order = np.argsort(every, kind="stable")
        found = (every, np.concatenate(extra), np.concatenate(extra_lines))
        return self._make(name, called, *(array[order] for array in found))

    def rates(self) -> Iterator[Series]:
        steps = self.told.steps
        for i, number in enumerate(np.unique(steps["optimizer"])):
            keep = (steps["optimizer"] == number) & np.isfinite(steps["lr"])
            yield self._column(f"lr/optimizer{int(number)}" if i else "lr", "lr", keep)
        yield self._column("loss_scale", "scale", np.isfinite(steps["scale"]))

    def norms(self) -> Iterator[Series]:
        """Norms that clipping measured, at every step; else of the steps that were looked at."""
        steps = self.told.steps
        owners = own_losses(steps) or [0]
        labels = optimizer_labels(self.told.process, owners)
        for owner in owners:
            name = "grad_norm" if len(owners) == 1 else f"grad_norm/{labels[owner]}"
            is_clipped = np.isfinite(steps["clip_max"]) | np.isfinite(steps["clip_norm"])
            keep = (steps["optimizer"] == owner) & is_clipped
            if keep.any():
                yield self._column(name, "clip_norm", keep)
                if len(owners) == 1:
                    known = keep & np.isfinite(steps["clip_max"])
                    yield self._column("clip_max", "clip_max", known)
            else:
                yield self._sampled_norm(name, owner)

    def _sampled_norm(self, name: str, owner: int) -> Series:
        norms = [
            (s.step, np.sqrt(np.sum(np.square(known))), s.line)
            for s in self.told.process.samples
            if s.optimizer == owner
            and len(known := np.array([g for g in s.grad_norms if g is not None], dtype=float))
        ]
        table = np.array(norms, dtype=np.float64).reshape(-1, 3)
        return self._make(name, "norm of grad_norms", table[:, 0], table[:, 1], table[:, 2])

    def times(self) -> Iterator[Series]:
        steps = self.told.steps
        own = _is_own(steps) if _is_own(steps).any() else np.ones(len(steps), dtype=bool)
        own = own & ~(steps["total_s"] <= 0)  # the clock began anew in the middle of the step
        for name, column in _TIMES.items():
            yield self._column(name, column, own & np.isfinite(steps[column]))

    def memory(self) -> Iterator[Series]:
        samples = self.told.process.samples
        for name, called in (("memory/rss", "rss_bytes"), ("memory/device", "device_bytes")):
            points = [(s.step, getattr(s, called), s.line) for s in samples]
            table = np.array(points, dtype=np.float64).reshape(-1, 3)
            table = table[np.isfinite(table[:, 1])]
            yield self._make(name, called, table[:, 0], table[:, 1], table[:, 2])

    def layers(self) -> Iterator[Series]:
        """Yield gradient norm, weight norm and relative update of the parameters."""
        groups: dict[tuple[int, tuple[str, ...]], list[Sample]] = {}
        for sample in self.told.process.samples:
            groups.setdefault((sample.optimizer, sample.names), []).append(sample)
        owners: dict[str, set[int]] = {}
        for optimizer, names in groups:
            for name in names:
                owners.setdefault(name, set()).add(optimizer)
        labels = optimizer_labels(self.told.process, sorted({o for o, _ in groups}))
        parts: dict[str, list[Series]] = {}
        for (optimizer, names), samples in groups.items():
            shown = {
                i: name if len(owners[name]) == 1 else f"{labels[optimizer]}.{name}"
                for i, name in list(enumerate(names))[:: 1 + len(names) // (MAX_LAYERS + 1)]
            }
            for series in self._layers(samples, shown):
                parts.setdefault(series.name, []).append(series)
        for same in parts.values():
            yield same[0] if len(same) == 1 else _joined(same)

    def _layers(self, samples: list[Sample], shown: dict[int, str]) -> Iterator[Series]:
        for kind in ("grad_norm", "weight_norm", "update_ratio"):
            told = [s for s in samples if getattr(s, f"{kind}s")]
            if not told:
                continue
            rows = [getattr(s, f"{kind}s") for s in told]
            values = np.array(rows, dtype=np.float64)
            known = np.array([[v is not None for v in row] for row in rows])
            steps = np.array([s.step for s in told], dtype=np.float64)
            lines = np.array([s.line for s in told], dtype=np.float64)
            for i, name in shown.items():
                keep = known[:, i]
                called = f"{kind} of {name}"
                made = (steps[keep], values[keep, i], lines[keep])
                yield self._make(f"layers/{name}/{kind}", called, *made)


def _joined(parts: list[Series]) -> Series:
    """Join the stretches of one curve between which the list of parameters changed."""
    joined = Series(
        parts[0].name,
        np.concatenate([p.values for p in parts]),
        np.concatenate([p.steps for p in parts]),
        parts[0].origin,
        "step",
        places=np.concatenate([p.places for p in parts]),
    )
    return joined.take(np.argsort(joined.places, kind="stable"))


def _stands_out(extreme: Floats, values: Floats, before: Floats) -> Mask:
    """Tell which extremes lie further above what is around them than extremes usually do."""
    with np.errstate(all="ignore"):
        above = extreme - np.fmax(values, before)
        usual = above[np.isfinite(above)]
        if not len(usual):
            return np.isfinite(extreme) & ~np.isfinite(values)
        middle = float(np.median(usual))
        width = 1.4826 * float(np.median(np.abs(usual - middle)))
        scale = max(width, 1e-3 * float(np.median(np.abs(values[np.isfinite(values)]))), 1e-12)
        is_out = above > max(middle, 0.0) + STANDS_OUT * scale
        return np.asarray(is_out | (np.isfinite(extreme) & ~np.isfinite(values)))


def _within(at: Floats, stride: Floats, share: float) -> Floats:
    """Return a step among those that a row stands for, before its last."""
    return np.asarray(at - np.clip(np.round(share * stride), 1, np.maximum(stride - 1, 1)))


def epochs_at(steps: Floats, passes: Sequence[Epoch]) -> Floats:
    """Return which pass over the training data each step was in, counting from 0.

    Known where one loader gave the training data and at least one pass over it has ended.
    """
    trained = [p for p in passes if p.trained > 0]
    if len({p.loader for p in trained}) != 1:
        return np.empty(0)
    ends = np.array([p.step for p in trained], dtype=np.float64)
    if np.any(np.diff(ends) <= 0):
        return np.empty(0)
    lengths = np.array([p.trained for p in trained], dtype=np.float64)
    index = np.searchsorted(ends, steps, side="right")  # steps count from 0
    begins = np.concatenate([ends - lengths, ends[-1:]])  # the last one is still going on
    lengths = np.append(lengths, lengths[-1])
    done = (steps - begins[index]) / lengths[index]
    return np.asarray(index + np.clip(done, 0.0, 0.999))
