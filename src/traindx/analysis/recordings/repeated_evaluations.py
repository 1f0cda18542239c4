"""Passes over the same held-out examples, time and again: whether they look the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose

from traindx.analysis.recordings.evaluations import is_over_held_out_data
from traindx.analysis.recordings.observations import is_integer, rows
from traindx.model.recording import Evaluation, Loader, Process, Summary

KNOWN = 8  # examples whose labels are the same: no coincidence
ROUNDING = 1e-6  # of sums over the same values in another order


@dataclass(frozen=True)
class ChangedExamples:
    """An input of held-out examples that has other values in every pass."""

    loader: Loader
    passes: tuple[tuple[Evaluation, Summary], ...]


def changed_examples(process: Process) -> Iterator[ChangedExamples]:
    """Yield the inputs that a loader in order gives with the same labels and other values.

    Two views of an example, or a noisy one beside the clean one, are the task itself.
    """
    for loader in process.loaders:
        if loader.is_shuffled or loader.sampler != "SequentialSampler":
            continue
        passes = [
            e
            for e in process.evaluations
            if e.loader == loader.id and e.batch and is_over_held_out_data(process, e)
        ]
        name = _changed(passes)
        if name is not None:
            seen = [(e, b) for e in passes for b in e.batch if b.name == name]
            yield ChangedExamples(loader, tuple(seen))


def _changed(passes: Sequence[Evaluation]) -> str | None:
    """Return the one input that no pass gave twice, where all gave the same labels."""
    if len(passes) < 2:
        return None
    parts = [{b.name: b for b in e.batch} for e in passes]
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
    return (
        rows(given.shape) >= KNOWN
        and given.std > 0
        and (is_integer(given) or "float" in given.dtype)
    )
