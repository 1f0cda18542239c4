"""Memory and graphs of a recorded run that grow from step to step."""

from itertools import pairwise
from math import isnan

import numpy as np

from traindx.analysis.curves import grows_steadily
from traindx.analysis.recordings.ranks import last_step
from traindx.model.recording import Process, Sample

BEGINNING = 0.2  # of the steps: pools, caches and the first batches are allocated in them
GROWTH = 0.2
LEAST_BYTES = 200 << 20
ENOUGH = 8  # samples after the beginning …
FEW = 4  # … or so many, if all samples from the first step on lie on one line
ON_ONE_LINE = 0.995  # correlation of memory and step
CHAINED = 3.0  # times as many nodes in the graph at the end
TWICE = 2.0  # the last over the first
STRAIGHT = 0.98  # correlation of nodes and steps
KEPT = 2  # graphs of steps before: a single one may be that of the best step
MOSTLY = 0.5  # of those that were marked
IN_A_ROW = 3  # samples: garbage that is not collected yet goes before
STEP_SHARE = 0.2  # of a step's own graph is added per step; a longer sequence now and then is less


def growing_memory(process: Process, field: str) -> list[Sample]:
    """Return the samples after the beginning, if memory grows in every third of them; else none.

    The beginning is a fifth of the steps, or the first whole epoch where there is one.
    """
    begin = max(BEGINNING * last_step(process), *whole_epochs(process)[:1], 0.0)
    samples = [s for s in process.samples if s.step >= begin and memory_of(s, field) > 0]
    if len(samples) < ENOUGH and not grows_in_a_line(process, field, len(samples)):
        return []
    values = np.array([memory_of(s, field) for s in samples], dtype=np.float64)
    steps = np.array([s.step for s in samples], dtype=np.float64)
    return samples if grows_steadily(steps, values, LEAST_BYTES, GROWTH) else []


def whole_epochs(process: Process) -> list[float]:
    """Return the steps at which whole epochs of training ended."""
    return [float(e.step) for e in process.epochs if e.trained and e.is_whole]


def grows_in_a_line(process: Process, field: str, late: int) -> bool:
    """Tell whether the memory of all samples from the first step on lies on one line."""
    known = [(s.step, memory_of(s, field)) for s in process.samples if memory_of(s, field) > 0]
    if late < FEW or len(known) < ENOUGH:
        return False
    steps, values = np.array(known, dtype=np.float64).T
    is_varied = np.ptp(steps) > 0 and np.ptp(values) > 0
    return bool(is_varied and np.corrcoef(steps, values)[0, 1] >= ON_ONE_LINE)


def memory_of(sample: Sample, field: str) -> float:
    """Return the bytes that a sample tells of; 0 where they are not known."""
    value = float(getattr(sample, field))
    return 0.0 if isnan(value) else value


def has_growing_graph(process: Process) -> bool:
    """Tell whether the graph of the loss grows from sample to sample as well."""
    nodes = [s.graph_nodes for s in process.samples if s.graph_nodes > 0]
    is_rising = all(later > earlier for earlier, later in pairwise(nodes))
    return len(nodes) >= ENOUGH and is_rising and nodes[-1] >= CHAINED * nodes[0]


def counted_graphs(samples: list[Sample]) -> list[Sample]:
    """Leave out what follows the largest graph: the recorder stops counting somewhere."""
    if not samples:
        return samples
    top = max(s.graph_nodes for s in samples)
    end = next(i for i, s in enumerate(samples) if s.graph_nodes == top)
    return samples[: end + 1] if all(s.graph_nodes == top for s in samples[end:]) else samples


def contains_earlier_graphs(samples: list[Sample]) -> bool:
    """Tell whether every step adds a good part of a step's own graph to the graph before."""
    nodes = np.array([s.graph_nodes for s in samples], dtype=np.float64)
    steps = np.array([s.step for s in samples], dtype=np.float64)
    if not np.all(np.diff(nodes) > 0) or not np.all(np.diff(steps) > 0):
        return False
    if nodes[-1] < TWICE * nodes[0] or float(np.corrcoef(nodes, steps)[0, 1]) < STRAIGHT:
        return False
    per_step = (nodes[-1] - nodes[0]) / (steps[-1] - steps[0])
    return bool(per_step > STEP_SHARE * nodes[0] / (steps[0] + 1))


def kept_graphs(process: Process) -> list[Sample]:
    """Return the longest row of samples in which most graphs of earlier samples are alive."""
    best: list[Sample] = []
    row: list[Sample] = []
    for sample in process.samples:
        is_kept = sample.kept_graphs >= KEPT and sample.kept_graphs > MOSTLY * sample.past_graphs
        row = [*row, sample] if is_kept else []
        best = row if len(row) > len(best) else best
    return best if len(best) >= IN_A_ROW else []
