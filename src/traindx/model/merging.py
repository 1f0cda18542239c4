"""One run from many parts: the same metric told twice is counted once.

Readers and artifacts overlap: a log prints a loss that a CSV holds too, a per-epoch line repeats
the mean of the per-step lines, a resumed run continues in a second file. Two tellings of one metric
are joined when one continues the other, folded when they agree, and kept apart when they differ:
the fuller one keeps the plain name and the other one gets `@2`.

To agree means to be equal to the last printed digit. Two metrics that share a name and are merely
close are different metrics, and both stay.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traindx.model.metric_names import PHASES, bare_phase, kind_of, phase_of, words
from traindx.model.recording import Recording
from traindx.model.run import (
    Architecture,
    Config,
    Event,
    Failure,
    Floats,
    Run,
    Series,
    Setting,
    join_points,
)
from traindx.model.step_counters import unwrap_steps

_Order = tuple[bool, int, bool, int, int, bool, str, str, bytes]
_SHARD = re.compile(r"-\d+-of-\d+\.\w+$|\.\w+\.index\.json$")  # model-00001-of-00002.safetensors
_DIGITS = re.compile(r"(\d+)")
SHARED_ENOUGH = 0.95  # share of common points that must agree; a log may cut a digit or two wrongly
OVERLAP = 0.25  # share of a run that may be repeated or lost where another file continues it
SINGLE_PRECISION = 1e-6  # relative difference of a float32 and the float64 it was written from
CHANCE = 1e-3  # odds below which an equal sequence of values is no coincidence
ALIKE = 20.0  # times; a loss on held-out data is no further from the one of training
REPEATED = 3  # evaluations; a test after the training is done once, or before and after
MESSAGE_ENOUGH = 40  # characters of a message that was cut which tell it from others
# words of a name that may tell a term from the sum of all
_TERMS = frozenset({"ce", "bce", "nll", "binary", "smooth", "lm", "sparse", "cross"})
SAMPLED = 256  # points looked at to learn how many digits a telling prints


def merge_runs(parts: Sequence[Run], name: str) -> Run:
    """Return the one run that several artifacts tell of."""
    architectures = [p.architecture for p in parts if p.architecture is not None]
    checkpoints = merge_checkpoints(c for p in parts for c in p.checkpoints)
    recording = merge_recordings(p.recording for p in parts if p.recording is not None)
    seen = recorded_paths(recording)
    return Run(
        name=name,
        series=resolve(_held_out([s for p in parts for s in _phases_named(p.series)]), seen),
        events=_told_once(e for p in parts for e in p.events),
        failures=_merge_failures((f for p in parts for f in p.failures), seen),
        sources=tuple(dict.fromkeys(s for p in parts for s in p.sources)),
        documents=tuple(dict.fromkeys(d for p in parts for d in p.documents)),
        config=_merge_settings(s for p in parts for s in p.config.settings),
        architecture=_latest(checkpoints, architectures),
        artifacts=tuple(a for p in parts for a in p.artifacts),
        symptoms=tuple(dict.fromkeys(s for p in parts for s in p.symptoms)),
        checkpoints=checkpoints,
        samples=tuple(dict.fromkeys(s for p in parts for s in p.samples)),
        confusions=tuple(dict.fromkeys(c for p in parts for c in p.confusions)),
        recording=recording,
    )


def merge_recordings(parts: Iterable[Recording]) -> Recording | None:
    """Return the processes of one command together: rank 0 first, of a rank the longest first."""
    told = list(parts)
    if not told:
        return None
    processes = {p.path: p for part in told for p in part.processes}
    ordered = sorted(
        processes.values(),
        key=lambda p: (p.rank, -(p.counts.steps if p.counts else 0), -len(p.samples), p.path),
    )
    ending = next((part.ending for part in told if part.ending is not None), None)
    return Recording(tuple(ordered), ending)


def recorded_paths(recording: Recording | None) -> frozenset[str]:
    """Return the artifacts that were written inside the training processes."""
    return frozenset(p.path for p in recording.processes) if recording else frozenset()


def _told_once(events: Iterable[Event]) -> tuple[Event, ...]:
    """Drop what another artifact tells too, as a tracker's file repeats the console log."""
    first: dict[tuple[str, str, float | None, float | None], str] = {}
    kept = []
    for event in events:
        same = (event.kind, event.text, event.step, event.epoch)
        if not event.locator or first.setdefault(same, event.artifact) == event.artifact:
            kept.append(event)
    return tuple(kept)


def _merge_failures(
    failures: Iterable[Failure], recorded: Collection[str] = ()
) -> tuple[Failure, ...]:
    """Keep each failure once, and those with a time first, in its order: the first one counts."""
    kept: list[Failure] = []
    seen: list[Failure] = []
    for failure in failures:
        if failure.artifact in recorded:
            seen.append(failure)
            continue
        for i, other in enumerate(kept):
            if _is_same(failure, other):
                fuller = max(other, failure, key=lambda f: (f.time_s is not None, len(f.frames)))
                step = other.step if fuller.step is None else fuller.step
                kept[i] = replace(fuller, step=step)
                break
        else:
            kept.append(failure)
    return _in_time(_with_recorded(kept, seen))


def _with_recorded(printed: list[Failure], seen: Iterable[Failure]) -> list[Failure]:
    """Add what was seen inside the processes; mostly it was printed too, the last time it came."""
    kept = list(printed)
    free = set(range(len(kept)))
    for failure in seen:
        at = max((i for i in free if _is_printed(failure, kept[i])), default=None)
        if at is None:
            kept.append(failure)
            continue
        free.remove(at)
        kept[at] = replace(
            kept[at],
            frames=max(kept[at].frames, failure.frames, key=len),
            rank=failure.rank if kept[at].rank is None else kept[at].rank,
            step=failure.step,
            time_s=failure.time_s,
        )
    return kept


def _in_time(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Order failures by time; without one, a failure is as old as what follows it in its log."""
    times: list[float] = []
    following: dict[str, float] = {}
    for failure in reversed(failures):
        later = following.get(failure.artifact, math.inf)
        times.append(later if failure.time_s is None else failure.time_s)
        following[failure.artifact] = times[-1]
    order = sorted(zip(reversed(times), range(len(failures)), strict=True))
    return tuple(failures[i] for _, i in order)


def _is_same(a: Failure, b: Failure) -> bool:
    if a.artifact == b.artifact or (a.type, a.message) != (b.type, b.message):
        return False
    if a.rank is not None and b.rank is not None and a.rank != b.rank:
        return False
    return a.frames == b.frames or None not in (a.rank, b.rank)


def _is_printed(seen: Failure, printed: Failure) -> bool:
    """Tell whether a failure is what was seen inside a process, as it was printed."""
    if seen.rank is not None and printed.rank is not None and seen.rank != printed.rank:
        return False
    if seen.type.rsplit(".", 1)[-1] != printed.type.rsplit(".", 1)[-1]:
        return False
    ours, theirs = (" ".join(f.message.split()) for f in (seen, printed))
    if ours != theirs:  # either may have been cut
        shared = min(len(ours), len(theirs))
        if shared < MESSAGE_ENOUGH or ours[:shared] != theirs[:shared]:
            return False
    lines = [{(frame.file, frame.line) for frame in f.frames} for f in (seen, printed)]
    return not lines[0] or not lines[1] or not lines[0].isdisjoint(lines[1])


def merge_checkpoints(parts: Iterable[Architecture]) -> tuple[Architecture, ...]:
    """Return each checkpoint once, its shards together, by step or epoch or else by name."""
    whole: dict[str, Architecture] = {}
    for part in parts:
        name = _SHARD.sub("", part.artifact)
        known = whole.get(name)
        if known is not None and known.artifact != part.artifact:
            tensors = {t.name: t for t in (*known.tensors, *part.tensors)}
            artifact = max(known.artifact, part.artifact, key=lambda a: a.endswith(".json"))
            whole[name] = replace(known, tensors=tuple(tensors.values()), artifact=artifact)
        else:
            whole[name] = part
    found = sorted(whole.values(), key=lambda c: [_natural(p) for p in _DIGITS.split(c.artifact)])
    for when in ("step", "epoch"):
        if all(getattr(c, when) is not None for c in found):
            return tuple(sorted(found, key=lambda c: float(getattr(c, when))))
    return tuple(found)


def _natural(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdecimal() and len(part) < 19 else (-1, part)


def _latest(
    checkpoints: Sequence[Architecture], architectures: Sequence[Architecture]
) -> Architecture | None:
    """Return the last checkpoint of the model; one of a small part of it does not stand for it."""
    known = checkpoints or architectures
    largest = max(known, key=lambda a: len(a.tensors), default=None)
    if largest is None or not checkpoints:
        return largest
    return [c for c in checkpoints if 2 * len(c.tensors) >= len(largest.tensors)][-1]


def _phases_named(told: Mapping[str, Series]) -> list[Series]:
    """Say of what a series is that only names its data, as in ``loss: 0.44, held_out: 0.40``."""
    kinds = {kind_of(n) for n in told if phase_of(n) is not None} - {"other"}
    named = []
    for name, series in told.items():
        phase = bare_phase(name)
        kind = next(iter(kinds)) if len(kinds) == 1 else ""
        train = told.get(f"{kind}/train")
        is_beside = phase is not None and train is not None and f"{kind}/{phase}" not in told
        is_same = is_beside and train is not None and _are_alike(series, train)
        named.append(series.renamed(f"{kind}/{phase}") if is_same else series)
    return named


def _are_alike(one: Series, other: Series) -> bool:
    """Tell whether two series may measure the same on different data."""
    medians = [float(np.median(np.abs(s.finite().values))) for s in (one, other) if len(s.finite())]
    return len(medians) == 2 and min(medians) > max(medians) / ALIKE


def _held_out(told: list[Series]) -> list[Series]:
    """Call a test set validation if it is evaluated again and again and there is no other."""
    if any(phase_of(s.name) == "val" for s in told):
        return told
    return [
        s.renamed(s.name.replace("/test", "/val", 1))
        if phase_of(s.name) == "test" and len(s) >= REPEATED
        else s
        for s in told
    ]


def _merge_settings(settings: Iterable[Setting]) -> Config:
    seen: dict[tuple[str, str, str], Setting] = {}
    for setting in settings:
        seen.setdefault((setting.key, str(setting.value), setting.artifact), setting)
    return Config(tuple(seen.values()))


@np.errstate(all="ignore")  # a diverged run holds infinities, and they are no fault of ours
def resolve(told: Iterable[Series], recorded: Collection[str] = ()) -> dict[str, Series]:
    """Return one series per canonical name, plus `name@2`, `name@3` where tellings differ.

    What comes from a `recorded` artifact stands for its metric: it is exact and of every step.
    """
    groups: dict[str, list[Series]] = {}
    for series in told:
        if len(series):
            groups.setdefault(series.name.split("@", 1)[0], []).append(unwrap_steps(series))
    resolved: dict[str, Series] = {}

    def order(series: Series) -> tuple[bool, _Order]:
        return series.origin.artifact not in recorded, _fullest_first(series)

    for name, tellings in groups.items():
        kept = _fold(sorted(tellings, key=order))
        kept = sorted(_chain(kept), key=order)
        first, *others = _fold(kept)
        resolved[name] = replace(first, name=name)
        at = 2
        for series in others:
            label = _term(name, first, series)
            if label is None or label in resolved or label in groups:
                label, at = f"{name}@{at}", at + 1
            resolved[label] = replace(series, name=label)
    return resolved


def _term(name: str, total: Series, series: Series) -> str | None:
    """Return the name of a term that is told beside its total: ``loss_ce`` beside ``loss``."""
    if total.origin.artifact != series.origin.artifact or len(total) != len(series):
        return None
    said = set(words(total.origin.name))
    own = [w for w in words(series.origin.name) if w in _TERMS and w not in said]
    is_beside = bool(own) and bool(np.array_equal(total.places, series.places))
    return f"{name}/{'_'.join(own)}" if is_beside and len(total.places) else None


def _fullest_first(series: Series) -> _Order:
    """Order tellings by how well they stand for the metric, the same whatever order they come in.

    Of an evaluation, the value for the whole set counts, not the one of each batch.
    """
    named = words(series.origin.name)
    is_evaluation = phase_of(series.name) in {"val", "test"}
    return (
        is_evaluation and "step" in named and "epoch" not in named,
        -len(series),
        len(series) > 1 and bool(np.all(series.values == series.values[0])),
        _is_part(named),
        sum(w not in PHASES for w in named),
        not any(w in PHASES for w in named),
        series.origin.artifact,
        series.origin.name,
        series.steps.tobytes() + series.values.tobytes(),
    )


def _is_part(named: Sequence[str]) -> int:
    """Rank a name by how surely it is the whole: ``loss_total``, ``loss``, then ``loss_smooth``."""
    if {"total", "overall"} & set(named):
        return 0
    return 1 + bool(_TERMS & set(named))


def _fold(tellings: Iterable[Series]) -> list[Series]:
    """Drop what an earlier one of the tellings says too."""
    kept: list[Series] = []
    for series in tellings:
        for i, other in enumerate(kept):
            is_richer = _richness(series) > _richness(other)
            longer, shorter = (series, other) if is_richer else (other, series)
            if _is_retold(longer, shorter):
                kept[i] = longer
                break
        else:
            kept.append(series)
    return kept


def _richness(series: Series) -> tuple[int, tuple[int, int]]:
    return len(series), _precision(series.values)


def _chain(tellings: Sequence[Series]) -> list[Series]:
    """Join what one artifact began and another one continued."""
    chains: list[Series] = []
    ends: list[str] = []  # the artifact that the chain has reached
    for series in sorted(tellings, key=lambda s: (float(s.steps[0]), *_fullest_first(s))):
        for i, chain in enumerate(chains):
            if ends[i] != series.origin.artifact and _continues(chain, series):
                chains[i] = _join(chain, series)
                ends[i] = series.origin.artifact
                break
        else:
            chains.append(series)
            ends.append(series.origin.artifact)
    return chains


def _continues(first: Series, second: Series) -> bool:
    """Tell whether one begins where the other ends, give or take what a resumed run repeats."""
    if (
        first.axis != second.axis
        or first.axis == "point"
        or first.origin.name != second.origin.name
    ):
        return False
    begin, end = float(first.steps[0]), float(first.steps[-1])
    resumed, last = float(second.steps[0]), float(second.steps[-1])
    if not np.isfinite([begin, end, resumed, last]).all() or last <= end:
        return False
    stride = max(_stride(first), _stride(second))
    if resumed <= max(begin, 1.5 * _stride(second)):  # it begins anew: another run
        return False
    slack = max(OVERLAP * (end - begin), 3.0 * stride)
    return abs(end - resumed) <= slack or _agree_where_shared(first, second)


def _stride(series: Series) -> float:
    ahead = np.diff(series.steps)
    ahead = ahead[ahead > 0]
    return float(np.median(ahead)) if len(ahead) else 1.0


def _agree_where_shared(first: Series, second: Series) -> bool:
    shared, at, of = np.intersect1d(first.steps, second.steps, return_indices=True)
    return len(shared) > 2 and _agree(first, at, second, of)


def _join(first: Series, second: Series) -> Series:
    joined = join_points(first, second)
    if first.origin.artifact == second.origin.artifact:
        return joined
    # a line number would be looked up in the wrong file
    artifact = f"{first.origin.artifact} + {second.origin.artifact}"
    origin = replace(first.origin, artifact=artifact)
    return replace(joined, origin=origin, places=np.empty(0, dtype=np.int64))


def _is_retold(longer: Series, shorter: Series) -> bool:
    """Tell whether every point of the shorter telling stands in the longer one too."""
    for ours, theirs in _shared_axes(longer, shorter):
        shared, at, of = np.intersect1d(ours, theirs, return_indices=True)
        if len(shared) == len(np.unique(theirs)) and _agree(longer, at, shorter, of):
            return len(shared) >= SHARED_ENOUGH * len(shorter) or _stands_in(longer, shorter)
    return _stands_in(longer, shorter)


def _shared_axes(a: Series, b: Series) -> list[tuple[Floats, Floats]]:
    axes = []
    if a.axis == b.axis and a.axis != "point":
        axes.append((a.steps, b.steps))
    epochs = [s.epochs if len(s.epochs) else s.steps if s.axis == "epoch" else None for s in (a, b)]
    if epochs[0] is not None and epochs[1] is not None:
        axes.append((epochs[0], epochs[1]))
    return [(x, y) for x, y in axes if np.isfinite(x).all() and np.isfinite(y).all()]


def _agree(a: Series, at: NDArray[np.intp], b: Series, of: NDArray[np.intp]) -> bool:
    ours, theirs = a.values[at], b.values[of]
    close = _is_equal(ours, theirs, _tolerance(a.values, b.values, ours))
    return bool(np.mean(close) >= SHARED_ENOUGH)


def _is_equal(ours: Floats, theirs: Floats | float, tolerance: Floats) -> NDArray[np.bool_]:
    near = np.abs(ours - theirs) <= tolerance
    return np.asarray(near | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))


def _tolerance(a: Floats, b: Floats, at: Floats) -> Floats:
    """Return how far two tellings may differ at some values if one of them prints fewer digits."""
    ours, theirs = _last_digit(a, at), _last_digit(b, at)
    rounded = np.where(ours == theirs, 0.0, 0.5 * np.maximum(ours, theirs))
    return np.asarray(rounded + SINGLE_PRECISION * np.abs(at))


def _last_digit(values: Floats, at: Floats) -> Floats:
    """Return the unit of the last digit that a telling prints, at some values."""
    decimals, significant = _precision(values)
    if significant < 2:  # 0 and 1 are near to everything
        return np.zeros(len(at))
    relative = 10.0 ** (np.floor(np.log10(np.abs(at))) + 1 - significant)
    relative = np.where(np.isfinite(relative), relative, 0.0)
    return np.asarray(np.maximum(10.0 ** float(-decimals), relative))


def _precision(values: Floats) -> tuple[int, int]:
    """Return how many decimals and how many significant digits a telling prints."""
    finite = values[np.isfinite(values)]
    sample = finite[:: max(1, len(finite) // SAMPLED)]
    printed = [_digits(float(v)) for v in sample if v != 0.0]
    return max((d for d, _ in printed), default=0), max((s for _, s in printed), default=0)


def _digits(value: float) -> tuple[int, int]:
    mantissa, _, exponent = f"{value!r}".lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    fraction = fraction.rstrip("0")
    significant = len((whole + fraction).lstrip("0")) if fraction else len(whole.rstrip("0"))
    return len(fraction) - int(exponent or 0), significant


def _stands_in(longer: Series, shorter: Series) -> bool:
    """Tell whether the values stand in the longer telling in the same order, and not by chance.

    This is how a "new best" line repeats a value without its step, and how a table that counts from
    0 repeats a log that counts from 1.
    """
    if len(shorter) > len(longer):
        return False
    tolerance = _tolerance(longer.values, shorter.values, longer.values)
    is_finite = longer.is_finite
    spread = float(np.ptp(longer.values[is_finite])) if is_finite.any() else 0.0
    if spread > 0.0:
        covered = min(1.0, 2.0 * float(tolerance[is_finite].sum()) / spread)
        informative = int(shorter.is_finite.sum())
        if informative * math.log(max(covered, 1e-300)) > math.log(CHANCE):
            return False
    return _is_subsequence(longer.values, shorter.values, tolerance)


def _is_subsequence(values: Floats, wanted: Floats, tolerance: Floats) -> bool:
    position = 0
    for value in wanted:
        window = 64
        while True:
            near = _is_equal(
                values[position : position + window],
                float(value),
                tolerance[position : position + window],
            )
            if near.any():
                position += int(np.argmax(near)) + 1
                break
            position += window
            window *= 4
            if position >= len(values):
                return False
    return True
