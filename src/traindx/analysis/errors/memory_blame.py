"""What used up the memory of a GPU."""

import numpy as np

from traindx.analysis.errors.failing_lines import evaluates_with_gradients
from traindx.analysis.errors.memory_sizes import Allocation, memory_words
from traindx.model.findings import Evidence, Strength, cite
from traindx.model.run import Failure, Run

SHARED_PART = 0.2  # of the device; less is the context or the desktop
LOOSE_PART = 0.1  # of the device; less is what any caching allocator keeps
LATE_STEPS = 100  # a need that is the same in every step shows long before this
GROWTH = 1.2  # last against first; allocators settle within that
Weights = dict[str, Strength]


def memory_causes(
    run: Run, failure: Failure, sizes: Allocation
) -> tuple[Weights, str, list[Evidence]]:
    """The causes that the numbers, the place and the time speak for."""
    if sizes.capacity and sizes.tried > sizes.capacity:
        return {"activation-memory": Strength.STRONG}, ": one request exceeds the whole GPU", []
    if sizes.others > SHARED_PART * sizes.capacity and sizes.tried <= sizes.free + sizes.others:
        reason = f": other processes hold {memory_words(sizes.others)}"
        return {"device-shared": Strength.STRONG, "activation-memory": Strength.WEAK}, reason, []
    if sizes.loose > max(sizes.tried, LOOSE_PART * sizes.capacity) > 0:
        reason = ": the reserved memory would suffice, but it is fragmented"
        weights = {"memory-fragmentation": Strength.STRONG, "activation-memory": Strength.WEAK}
        return weights, reason, []
    grown = _growth(run)
    if grown is not None:
        weights = {"graph-kept-alive": Strength.STRONG, "activation-memory": Strength.WEAK}
        return weights, ": memory has grown over the run", [grown]
    return _weigh_place(run, failure), "", []


def _weigh_place(run: Run, failure: Failure) -> Weights:
    if any("/optim/" in f.file or f.code.endswith("optimizer.step()") for f in failure.frames):
        return {"optimizer-state-memory": Strength.STRONG, "activation-memory": Strength.WEAK}
    if evaluates_with_gradients(run, failure):
        return {"evaluation-with-grad": Strength.STRONG, "activation-memory": Strength.WEAK}
    weights = {"activation-memory": Strength.STRONG, "optimizer-state-memory": Strength.WEAK}
    if failure.step is not None and failure.step >= LATE_STEPS:
        weights["graph-kept-alive"] = Strength.MODERATE
    return weights


def _growth(run: Run) -> Evidence | None:
    for series in (s.finite() for s in run.matching("memory/*")):
        values = series.values
        if len(values) < 6 or values[1] <= 0:
            continue
        share = float(np.mean(np.diff(values) >= 0))
        if values[-1] > GROWTH * values[1] and share > 0.8:
            said = f"{series.name} rises from {values[1]:.4g} to {values[-1]:.4g}"
            return cite(series, said, 1, len(series) - 1)
    return None
