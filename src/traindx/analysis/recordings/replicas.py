"""Replicas of one model on several ranks: their weights, their data and their pace."""

from collections.abc import Iterator, Sequence
from math import isnan

import numpy as np

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.rank_exchange import (
    brings_weights_together,
    gives_parts_of_data,
)
from traindx.analysis.recordings.ranks import rank_series
from traindx.model.findings import Evidence, cite_record
from traindx.model.recording import Fingerprint, Loader, Process
from traindx.model.run import Floats, Run

# between machines the same update may round differently; a real difference grows far beyond
ROUNDING = 1e-6
AVERAGED = ("localsgd", "hierarchical", "averag", "diloco", "federat")  # apart between meetings
SLOWER = 1.5
STEPS_TIMED = 20  # steps


def is_averaged(process: Process) -> bool:
    """Tell whether the replicas are meant to be apart between meetings."""
    kinds = [o.type.lower().replace("_", "") for o in process.optimizers]
    return any(word in kind for kind in kinds for word in AVERAGED)


def layout_of(process: Process) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return the shapes of the parameters of every model."""
    latest = {m.id: m for m in process.models}
    return tuple(tuple(p.shape for p in m.parameters) for _, m in sorted(latest.items()))


def differ(ranks: Sequence[Process], prints: Sequence[Fingerprint]) -> bool:
    """Tell whether the parameters of the ranks sum up to different values."""
    values = [f.parameters for f in prints if f.parameters is not None]
    if any(isnan(v) for v in values):
        return False  # broken weights are another matter
    is_one_host = len({p.host for p in ranks}) == 1
    allowed = 0.0 if is_one_host else ROUNDING * max(abs(v) for v in values)
    return max(values) - min(values) > allowed


def shuffled_distributed_loader(process: Process) -> Loader | None:
    """Return the one loader that was trained from, if a distributed sampler shuffles it."""
    trained = {e.loader for e in process.epochs if e.trained}
    found = [x for x in process.loaders if x.id in trained]
    is_one = len(trained) == 1 and len(found) == 1
    is_meant = is_one and found[0].is_shuffled and found[0].sampler == "DistributedSampler"
    return found[0] if is_meant else None


def batches_at_same_position(process: Process) -> list[tuple[Fingerprint, Fingerprint]]:
    """Return batches at the same position of two epochs, where all epochs are alike."""
    passes = [e for e in process.epochs if e.trained]
    sizes = {e.batches for e in passes if e.is_whole}
    if len(sizes) != 1 or any(e.trained != e.batches for e in passes if e.is_whole):
        return []
    size = sizes.pop()
    if any(e.step != (i + 1) * size for i, e in enumerate(passes) if e.is_whole):
        return []
    seen: dict[int, Fingerprint] = {}
    pairs = []
    for found in process.fingerprints:
        if found.batch is None:
            continue
        known = seen.setdefault(found.step % size, found)
        if known.step // size != found.step // size:
            pairs.append((known, found))
    return pairs


def time_alone(run: Run, rank: int) -> Floats | None:
    """Return the time of each step that a rank spends by itself, the first ones left out."""
    each = (rank_series(run, rank, name) for name in ("time/data", "time/forward"))
    parts = [s for s in each if s is not None]
    if not parts or len({len(s) for s in parts}) != 1 or len(parts[0]) < STEPS_TIMED:
        return None
    total = np.sum([s.values for s in parts], axis=0)
    return np.asarray(total[len(total) // 10 :], dtype=np.float64)


def is_always_slower(times: dict[int, Floats], slow: int) -> bool:
    """Tell whether a rank is slower than all others in both halves of the run."""
    for half in (0, 1):
        level = {r: float(np.median(np.array_split(t, 2)[half])) for r, t in times.items()}
        rest = max(v for r, v in level.items() if r != slow)
        if level[slow] < SLOWER * rest:
            return False
    return True


def where_time_is_lost(run: Run, slow: int, ranks: list[int], lost: float) -> str:
    """Return in words in which part of the step a slow rank loses its time."""
    for part, words in (("data", "waiting for data"), ("forward", "in the forward pass")):
        own = rank_series(run, slow, f"time/{part}")
        each = (rank_series(run, r, f"time/{part}") for r in ranks if r != slow)
        rest = [s for s in each if s is not None]
        if own is None or not rest:
            continue
        more = float(np.median(own.values) - np.median([np.median(s.values) for s in rest]))
        if more > 0.8 * lost:
            return words
    return "on data and the forward pass"


def cite_divided_data(run: Run) -> Evidence | None:
    """Return where the ranks are given different parts of one dataset: they train one model.

    Nothing where weights or gradients are brought together by hand, be it now and then.
    """
    program = program_of(run)
    if not run.sources or any(map(brings_weights_together, program.stories)):
        return None
    sampler = gives_parts_of_data(program)
    return None if sampler is None else sampler.cite("each rank gets a part of the data")


def cite_sums(ranks: Sequence[Process], prints: Sequence[Fingerprint]) -> Iterator[Evidence]:
    """Cite the sums of the parameters of the first ranks at a step."""
    for process, found in zip(ranks[:3], prints[:3], strict=True):
        value = found.parameters or 0.0
        says = f"on rank {process.rank} the parameters sum up to {value!r} at step {found.step}"
        yield cite_record(process, found.line, says, step=found.step)
