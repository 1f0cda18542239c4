"""Series out of tracks: global steps, phases from headings, one series per metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traindx.model.metric_names import HIGHER_IS_BETTER, canonical, is_measured, kind_of
from traindx.model.run import Floats, Ints, Origin, Series
from traindx.readers.formats.console.notes import LogNotes
from traindx.readers.formats.console.tracks import (
    EPOCH,
    PLACE,
    STEP,
    STEP_EPOCH,
    TOTAL,
    VALUE,
    Ledger,
    MetricTrack,
    SeriesKey,
)

CLOSE = 20  # lines from the loss of an evaluation to its last score, a confusion matrix between
NEAR = 6  # lines under a heading, or after the last line that belongs to it
RECURS = 3  # lines that an unknown name takes to be a series
SHARED = 0.02  # of the points; two kinds of lines that share more of their steps are two series


@dataclass(frozen=True, slots=True, eq=False)
class Telling:
    """The points of one metric from one kind of line, with what its counters mean."""

    told: SeriesKey
    rows: Floats
    has_step: bool
    has_epoch: bool
    is_bar: bool = False
    seen: int = 0
    is_cell: bool = False


@dataclass(frozen=True, slots=True)
class Counting:
    """How the run counts: the number of its first epoch, and step counters that begin anew."""

    first_epoch: float
    totals: frozenset[float]

    def steps(self, rows: Floats) -> Floats:
        """Return steps that count on through the epochs."""
        steps, totals, epochs = rows[:, STEP], rows[:, TOTAL], rows[:, STEP_EPOCH]
        is_local = np.isin(totals, list(self.totals)) & np.isfinite(epochs)
        passed = np.floor(epochs) - self.first_epoch
        return np.where(is_local, steps + np.where(is_local, passed * totals, 0.0), steps)

    def moment(self, counters: Floats) -> tuple[float | None, float | None]:
        """Return step and epoch of a line, given step, total, the step's epoch, and the epoch."""
        step, total, step_epoch, epoch = counters.tolist()
        row = np.array([[0.0, step, total, epoch, step_epoch, 0.0]])
        steps = float(self.steps(row)[0])
        return (None if np.isnan(steps) else steps), (None if np.isnan(epoch) else epoch)


def tellings_of(ledger: Ledger, notes: LogNotes) -> list[Telling]:
    """Return what each track tells, labels before the lines sorted out into steps and ranks."""
    found: list[Telling] = []
    for track in ledger.tracks():
        if not track.plan.cells:
            found += _by_label(track, track.rows)
    boxes = _boxed_steps(ledger, notes)
    return [_boxed(t, *boxes) if boxes is not None and t.is_cell else t for t in found]


def _boxed_steps(ledger: Ledger, notes: LogNotes) -> tuple[Floats, Ints, Floats] | None:
    """Return the rulers between boxes, and the boxes that hold a step, with that step."""
    if not ledger.announced or not notes.rulers:
        return None
    rows = np.concatenate(ledger.announced)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    rulers = np.array(notes.rulers)
    boxes, at = np.unique(np.searchsorted(rulers, rows[:, 0]), return_index=True)
    return rulers, boxes, rows[at, 1]


def _boxed(telling: Telling, rulers: Floats, boxes: Ints, steps: Floats) -> Telling:
    """Give the lines of a box the step that another line of it counts."""
    own = np.searchsorted(rulers, telling.rows[:, PLACE])
    at = np.minimum(np.searchsorted(boxes, own), len(boxes) - 1)
    if not bool(np.all(boxes[at] == own)):
        return telling
    rows = telling.rows.copy()
    rows[:, STEP], rows[:, TOTAL] = steps[at], np.nan
    return replace(telling, rows=rows, has_step=True)


def _by_label(track: MetricTrack, rows: Floats) -> list[Telling]:
    """A number before every line is a counter if it grows, and the rank of the writer if not."""
    plan = track.plan
    if not plan.is_label:
        has_step, has_epoch = plan.step is not None, plan.epoch is not None
        return [
            Telling(track.told, rows, has_step, has_epoch, plan.is_bar, track.seen, plan.is_cell)
        ]
    labels = rows[:, STEP]
    # at the end a counter may name its best step once more; ranks come again and again
    counted = labels[:-1] if len(labels) > 3 and labels[-1] > labels[0] else labels
    if len(labels) > 1 and bool(np.all(np.diff(counted) > 0)):
        return [Telling(track.told, rows, True, False, plan.is_bar, track.seen)]
    found = []
    for label in np.unique(labels):
        told = replace(track.told, rank=int(label))
        own = rows[labels == label].copy()
        own[:, STEP] = np.nan
        found.append(Telling(told, own, False, False, plan.is_bar, len(own)))
    return found


def counting_of(tellings: Iterable[Telling]) -> Counting:
    """Learn how the run counts from all that it counted."""
    first = 1.0
    groups: dict[tuple[str, int | None], list[Floats]] = {}
    for telling in tellings:
        if telling.has_epoch and bool(np.any(telling.rows[:, EPOCH] == 0.0)):
            first = 0.0
        if telling.has_step:
            key = (telling.told.name, telling.told.rank)
            groups.setdefault(key, []).append(telling.rows)
    totals: set[float] = set()
    for some in groups.values():
        totals |= _restarting(np.concatenate(some))
    return Counting(first, frozenset(totals))


def _restarting(rows: Floats) -> set[float]:
    """Return the totals of the counters that begin anew when the epoch goes on."""
    rows = rows[np.isfinite(rows[:, TOTAL]) & np.isfinite(rows[:, STEP_EPOCH])]
    rows = rows[np.lexsort((rows[:, PLACE], rows[:, TOTAL]))]
    same = np.diff(rows[:, TOTAL]) == 0
    begins = same & (np.diff(rows[:, STEP]) <= 0) & (np.diff(rows[:, STEP_EPOCH]) > 0)
    return set(rows[1:][begins, TOTAL].tolist())


def _places_without_counter(tellings: Iterable[Telling]) -> Floats:
    """Return the lines that only name values: such lines stand in a block under one heading."""
    found = [t.rows[:, PLACE] for t in tellings if not (t.has_step or t.has_epoch) and len(t.rows)]
    return np.unique(np.concatenate(found)) if found else np.empty(0)


@dataclass(frozen=True, slots=True)
class PhasesTold:
    """Where a log says what it speaks of: by headings, and in the lines of metrics themselves."""

    headings: Floats  # place and code, in order
    lines: Floats  # likewise of everything that has a phase or counts
    named: Floats  # places of the lines that name an evaluation as theirs


def phases_told(tellings: Sequence[Telling], notes: LogNotes) -> PhasesTold:
    """Return the phases that a log tells of; where a line names its own, the heading has ended."""
    said = [(p, float(PHASE_CODES.get(h, 0))) for p, h in notes.headings]
    headings = np.array(said, dtype=np.float64).reshape(-1, 2)
    marked = [headings]
    named = []
    kinds = {(t.told.rank, t.told.template, t.told.phase): t for t in tellings}  # of lines
    for (_, _, phase), telling in kinds.items():
        places = telling.rows[:, PLACE]
        if phase in PHASE_CODES:
            named.append(places)
        if phase is not None or telling.has_step or telling.has_epoch:
            code = PHASE_CODES.get(phase or "", 0)
            marked.append(np.column_stack([places, np.full(len(places), float(code))]))
    lines = np.concatenate(marked)
    # of one line, the metric with a phase decides
    lines = lines[np.lexsort((lines[:, 1], lines[:, 0]))]
    return PhasesTold(headings, lines, np.sort(np.concatenate(named or [np.empty(0)])))


def after_evaluation(telling: Telling, phased: PhasesTold) -> Telling:
    """Give scores that follow the line of an evaluation its phase: ``val Loss: 1.2`` ``AUC: 0.6``.

    A loss without a phase may be that of the next training step.
    """
    rows, lines = telling.rows, phased.lines
    is_score = kind_of(canonical(telling.told.name)) in _SCORES
    if telling.told.phase is not None or telling.has_step or telling.has_epoch or not is_score:
        return telling
    at = np.searchsorted(lines[:, 0], rows[:, PLACE], side="left") - 1
    if not len(rows) or not len(lines) or bool(np.any(at < 0)):
        return telling
    codes = np.unique(lines[at, 1])
    is_near = bool(np.all(rows[:, PLACE] - lines[at, 0] <= CLOSE))
    is_once = len(np.unique(at)) == len(at)
    if len(codes) != 1 or codes[0] == 0.0 or not is_near or not is_once:
        return telling
    phase = next(p for p, c in PHASE_CODES.items() if c == codes[0])
    return replace(telling, told=replace(telling.told, phase=phase))


def split_phases(telling: Telling, phased: PhasesTold, blocks: Floats) -> Iterator[Telling]:
    """Give points without a phase the one of the heading above them."""
    rows, headings = telling.rows, phased.headings
    if telling.told.phase is not None or not len(headings) or not len(rows):
        yield telling
        return
    places, phases = headings[:, 0], headings[:, 1]
    above = np.searchsorted(places, rows[:, PLACE], side="right") - 1
    start = np.where(above >= 0, places[np.maximum(above, 0)], -np.inf)
    before = np.append(-np.inf, rows[:-1, PLACE])
    if len(blocks) and not (telling.has_step or telling.has_epoch):
        at = np.searchsorted(blocks, rows[:, PLACE], side="left") - 1
        before = np.maximum(before, np.where(at >= 0, blocks[np.maximum(at, 0)], -np.inf))
    is_far = rows[:, PLACE] - np.maximum(start, before) > NEAR
    is_new = np.append(True, np.diff(above) != 0)
    far = np.cumsum(is_far)
    at_new = np.maximum.accumulate(np.where(is_new, np.arange(len(rows)), 0))
    is_under = (far - far[at_new] == 0) & ~is_far[at_new] & (above >= 0)
    codes = np.where(is_under, phases[np.maximum(above, 0)], 0)
    if kind_of(canonical(telling.told.name)) == "loss" and len(phased.named):
        # where a line names the phase of its heading, it is over for the next training step
        last = np.searchsorted(phased.named, rows[:, PLACE], side="left") - 1
        is_over = (last >= 0) & (phased.named[np.maximum(last, 0)] > start)
        codes = np.where(is_over, 0, codes)
    for code in np.unique(codes):
        phase = next((p for p, c in PHASE_CODES.items() if c == code), None)
        told = replace(telling.told, phase=phase)
        yield replace(telling, told=told, rows=rows[codes == code])


_SCORES = HIGHER_IS_BETTER - {"reward", "score"}
PHASE_CODES = {"val": 1, "test": 2}  # train is what a metric without a phase is anyway


def training_began(tellings: Iterable[Telling]) -> float:
    """Return the line of the first metric that came with a counter, or came again."""
    first = np.inf
    for telling in tellings:
        is_result = is_measured(canonical(telling.told.name))
        if (
            len(telling.rows)
            and is_result
            and (telling.has_step or telling.has_epoch or telling.seen > 2)
        ):
            first = min(first, float(telling.rows[0, PLACE]))
    return first


def series_of(
    tellings: Iterable[Telling], counting: Counting, notes: LogNotes, artifact: str
) -> list[Series]:
    """Return the series of a log; the same metric may come in several tellings."""
    groups: dict[tuple[str, str, str], list[Telling]] = {}
    tellings = list(tellings)
    blocks = _places_without_counter(tellings)
    phased = phases_told(tellings, notes)
    for whole in tellings:
        for telling in split_phases(after_evaluation(whole, phased), phased, blocks):
            name = canonical(telling.told.name, telling.told.phase)
            axis = _axis(telling, counting)
            groups.setdefault(
                (_ranked(name, telling.told.rank), axis, telling.told.name), []
            ).append(telling)
    made: list[Series] = []
    for (name, axis, raw), group in groups.items():
        is_share = _are_small_percents(name, group)
        for rows in _joined(group, axis, counting):
            if is_share:
                rows[:, VALUE] /= 100.0
            if len(rows) >= _least(name) and not (axis == "point" and _is_setting(name, rows)):
                made.append(_series(name, axis, rows, Origin(artifact, raw), counting))
    return made


def _ranked(name: str, rank: int | None) -> str:
    return name if not rank else f"ranks/{rank}/{name}"


def _least(name: str) -> int:
    """How many points make a series of a metric: a number that stands alone is none."""
    bare = name.split("/", 2)[2] if name.startswith("ranks/") else name
    if bare.startswith("other/"):
        return RECURS
    return 1 if is_measured(bare) and bare.split("/")[0] not in {"lr", "loss_scale"} else 2


def _is_setting(name: str, rows: Floats) -> bool:
    """Tell what was printed again before anything was counted: a rate, a number of workers."""
    if is_measured(name) and name.split("/", maxsplit=1)[0] not in {
        "lr",
        "loss_scale",
        "grad_norm",
    }:
        return False
    is_uncounted = bool(np.all(np.isnan(rows[:, [STEP, EPOCH]])))
    return is_uncounted and bool(np.all(rows[:, VALUE] == rows[0, VALUE]))


SMALL = 0.2  # range of a percentage below one; what moves more is a share that was printed with %


def _are_small_percents(name: str, group: list[Telling]) -> bool:
    """Tell ``acc: 1.0%`` of a hundred classes from a score that is 1: the others divide it so."""
    if kind_of(name) not in HIGHER_IS_BETTER or not all(t.told.is_percent for t in group):
        return False
    values = np.concatenate([t.rows[:, VALUE] for t in group])
    values = values[np.isfinite(values)]
    is_small = len(values) > 0 and 0.0 < float(values.max()) <= 1.0
    return is_small and float(np.ptp(values)) <= SMALL


def _axis(telling: Telling, counting: Counting) -> str:
    if telling.has_step:
        return "step"
    epochs = telling.rows[:, EPOCH]
    if telling.has_epoch:
        # two decimals of an epoch say less than the step that the bar above shows
        is_rough = bool(np.any(epochs % 1)) and not bool(np.all(np.diff(epochs) > 0))
        return "step" if is_rough and _advances(telling, counting) else "epoch"
    if bool(np.all(np.isfinite(epochs))) and bool(np.all(np.diff(epochs) > 0)):
        return "epoch"
    return "step" if _advances(telling, counting) else "point"


def _advances(telling: Telling, counting: Counting) -> bool:
    """Tell whether the inherited step moves on with every point."""
    steps = counting.steps(telling.rows)
    return bool(np.all(np.isfinite(steps))) and bool(np.all(np.diff(steps) > 0))


def _joined(group: list[Telling], axis: str, counting: Counting) -> list[Floats]:
    """Join kinds of lines that never speak of the same step; they are one series."""
    joined: list[Floats] = []
    for telling in sorted(group, key=lambda t: -len(t.rows)):
        rows = _without_refreshes(telling.rows) if telling.is_bar else telling.rows
        for i, other in enumerate(joined):
            if not _overlap(other, rows, axis, counting):
                both = np.concatenate([other, rows])
                joined[i] = both[np.argsort(both[:, PLACE], kind="stable")]
                break
        else:
            joined.append(rows)
    return joined


def _overlap(a: Floats, b: Floats, axis: str, counting: Counting) -> bool:
    if axis == "point":
        return False
    ours, theirs = (
        (counting.steps(a), counting.steps(b)) if axis == "step" else (a[:, EPOCH], b[:, EPOCH])
    )
    is_rough = axis == "epoch" and bool(np.any(ours % 1)) and bool(np.any(theirs % 1))
    if is_rough and len(np.unique(ours)) < len(ours):
        return False  # two decimals of an epoch do not tell one step from the next
    shared = int(np.isin(np.unique(theirs), ours).sum())
    return shared > SHARED * len(b)


def _without_refreshes(rows: Floats) -> Floats:
    """Drop what a progress bar shows again while nothing has moved on."""
    if len(rows) < 2:
        return rows
    told = np.nan_to_num(rows[:, [VALUE, STEP, EPOCH]], nan=-1.5, posinf=1e301, neginf=-1e301)
    moved: NDArray[np.bool_] = np.any(np.diff(told, axis=0) != 0, axis=1)
    # a bar that begins anew shows the values of before, and at first the epoch of before too
    is_begun = (rows[1:, STEP] == 0.0) & np.isfinite(rows[1:, TOTAL])
    is_stale = is_begun & (told[1:, 0] == told[:-1, 0])
    return np.asarray(rows[np.append(True, moved & ~is_stale)])


def _series(name: str, axis: str, rows: Floats, origin: Origin, counting: Counting) -> Series:
    steps = np.arange(len(rows), dtype=np.float64)
    if axis == "step":
        steps = counting.steps(rows)
    elif axis == "epoch":
        steps = rows[:, EPOCH].copy()
    epochs = rows[:, EPOCH] if bool(np.any(np.isfinite(rows[:, EPOCH]))) else np.empty(0)
    places = np.floor(rows[:, PLACE]).astype(np.int64)
    return Series(name, rows[:, VALUE].copy(), steps, origin, axis, epochs.copy(), places)
