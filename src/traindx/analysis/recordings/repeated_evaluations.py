"""Passes over the same held-out examples, time and again: whether they look the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose

from traindx.analysis.recordings.observations import rows
from traindx.model.recording import Epoch, Loader, Process, Summary

KNOWN = 8  # examples whose labels are the same: no coincidence
ROUNDING = 1e-6  # of sums over the same values in another order


@dataclass(frozen=True)
class ChangedExamples:
    """An input of held-out examples that has other values in every pass."""

    loader: Loader
    passes: tuple[tuple[Epoch, Summary], ...]  # with the input in the first batch


def changed_examples(process: Process) -> Iterator[ChangedExamples]:
    """Yield the inputs that a loader in order gives with the same labels and other values.

    Two views of an example, or a noisy one beside the clean one, are the task itself.
    """
    for loader in held_out_loaders(process):
        if loader.is_shuffled or loader.sampler != "SequentialSampler":
            continue
        passes = [e for e in process.epochs if e.loader == loader.id and e.first]
        name = _changed(passes)
        if name is not None:
            seen = [(e, s) for e in passes for s in e.first if s.name == name]
            yield ChangedExamples(loader, tuple(seen))


def held_out_loaders(process: Process) -> Iterator[Loader]:
    """Yield the loaders that nothing was trained on, nor on other passes over the same data."""
    trained_on = {e.loader for e in process.epochs if _is_trained(e)}
    trained = {(x.dataset, x.size) for x in process.loaders if x.id in trained_on}
    for loader in process.loaders:
        is_known = loader.size is not None and (loader.dataset, loader.size) not in trained
        if trained_on and loader.id not in trained_on and is_known:
            yield loader


def _is_trained(epoch: Epoch) -> bool:
    """Tell whether steps were taken on the batches of a pass.

    A framework may keep the pass of an evaluation open while it trains. Of two loaders that are
    read together the first has no step to itself, and as many batches as there are steps.
    """
    is_idle = epoch.own == 0 and epoch.batches < epoch.trained
    return epoch.trained > 0 and not is_idle


def _changed(passes: Sequence[Epoch]) -> str | None:
    """Return the one input that no pass gave twice, where all gave the same labels."""
    if len(passes) < 2:
        return None
    parts = [{s.name: s for s in e.first} for e in passes]
    if any(p.keys() != parts[0].keys() for p in parts):
        return None
    columns = {name: [p[name] for p in parts] for name in parts[0]}
    still = [c[0] for c in columns.values() if all(_is_same(*pair) for pair in pairwise(c))]
    moved = [c[0] for c in columns.values() if all(_is_other(*pair) for pair in pairwise(c))]
    if len(moved) != 1 or len(still) + 1 != len(columns) or not any(map(_is_telling, still)):
        return None
    return None if any(s.shape == moved[0].shape for s in still) else moved[0].name


def _is_same(one: Summary, other: Summary) -> bool:
    return one.shape == other.shape and all(
        isclose(a, b, rel_tol=ROUNDING, abs_tol=ROUNDING)
        for a, b in ((one.low, other.low), (one.high, other.high),
                     (one.mean, other.mean), (one.std, other.std))
    )  # fmt: skip


def _is_other(one: Summary, other: Summary) -> bool:
    """Tell whether the same examples have other values."""
    is_alike = one.shape == other.shape and len(one.shape) > 1 and "float" in one.dtype
    differs = not isclose(one.mean, other.mean, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return is_alike and differs and not isclose(one.std, other.std, rel_tol=ROUNDING)


def _is_telling(given: Summary) -> bool:
    """Tell whether a tensor has one value for each of enough examples, and they vary."""
    return rows(given.shape) >= KNOWN and given.std > 0
