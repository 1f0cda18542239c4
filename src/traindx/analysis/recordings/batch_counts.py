"""Ranks of a run that get different numbers of batches."""

from collections.abc import Sequence

from traindx.analysis.recordings.ranks import Standstill, is_data_parallel, training_loader
from traindx.model.findings import Evidence, cite_record
from traindx.model.recording import Epoch, Process

Found = tuple[str, tuple[Evidence, ...]]


def _passes(process: Process) -> list[Epoch]:
    return [e for e in process.epochs if e.trained and e.is_whole]


def uneven_passes(ranks: Sequence[Process]) -> Found | None:
    """Find the first epoch that has different numbers of batches on the ranks."""
    for epochs in zip(*(_passes(p) for p in ranks), strict=False):
        if len({e.batches for e in epochs}) > 1:
            few, many = _extremes([e.batches for e in epochs])
            claim = _claim(ranks, [e.batches for e in epochs], few, many)
            says = [
                f"rank {p.rank} has an epoch of {e.batches} batches"
                for p, e in zip(ranks, epochs, strict=True)
            ]
            lines = [e.line for e in epochs]
            return claim, _cite(ranks, lines, says, (few, many))
    return None


def uneven_loaders(ranks: Sequence[Process]) -> Found | None:
    """Find loaders of one dataset that have different lengths."""
    loaders = [x for x in map(training_loader, ranks) if x is not None]
    counts = [x.batches for x in loaders if x.batches is not None]
    if len(counts) < len(ranks) or len(set(counts)) == 1 or len({x.dataset for x in loaders}) > 1:
        return None
    few, many = _extremes(counts)
    says = [
        f"rank {p.rank} has a loader of {n} batches" for p, n in zip(ranks, counts, strict=True)
    ]
    claim = _claim(ranks, counts, few, many)
    return claim, _cite(ranks, [x.line for x in loaders], says, (few, many))


def overtaken(ranks: Sequence[Process], still: Sequence[Standstill]) -> Found | None:
    """Find a rank that finished its pass in fewer steps than the one that waits has begun."""
    lengths = [x.batches if (x := training_loader(p)) is not None else None for p in ranks]
    if None not in lengths:
        return None  # known, and equal
    waiting = {s.process.rank: s for s in still if s.is_in_backward}
    for process in ranks:
        done = _passes(process)
        for rank, standstill in waiting.items():
            own = len(_passes(standstill.process))
            if rank == process.rank or len(done) <= own or not is_data_parallel(process):
                continue
            steps = sum(e.trained for e in done[: own + 1])
            if standstill.stall.step < steps:
                continue  # it waits for an earlier step, so for another reason
            says = f"rank {process.rank} finished its epoch after {steps} steps"
            claim = f"Rank {process.rank} ran out of batches before rank {rank}"
            return claim, (cite_record(process, done[own].line, says, step=steps),)
    return None


def _extremes(counts: Sequence[int]) -> tuple[int, int]:
    return counts.index(min(counts)), counts.index(max(counts))


def _claim(ranks: Sequence[Process], counts: Sequence[int], few: int, many: int) -> str:
    return (
        f"Rank {ranks[few].rank} has {counts[few]} batches per epoch, rank {ranks[many].rank} has "
        f"{counts[many]}"
    )


def _cite(
    ranks: Sequence[Process], lines: Sequence[int], says: Sequence[str], which: Sequence[int]
) -> tuple[Evidence, ...]:
    return tuple(cite_record(ranks[i], lines[i], says[i]) for i in which)
