from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from traindx.analysis.recordings.ranks import is_data_parallel, is_sharded, rank_series, ranks_of
from traindx.analysis.recordings.replicas import is_always_slower, time_alone, where_time_is_lost
from traindx.examples import Model, Process, flat, make_run, recorded
from traindx.registry import Findings, Run, cite, detector, finding

WORTH = 0.1  # of the step: what is lost must matter …
LEAST_S = 0.002  # … and be more than the noise of a clock and a scheduler


@detector(needs=("recording", "time/*"), suggests=("straggler-rank",))
def check(run: Run) -> Findings:
    """One rank takes longer than the others for its data and its forward pass.

    ## What it detects
    A rank whose time for waiting for data and for the forward pass together is one and a half times
    that of the other ranks, or more, in the first and in the second half of the run (medians). The
    backward pass is left out: the quick ranks wait for the slow one in it.

    ## Why it matters
    Every step takes as long as the slowest rank needs: all devices idle for the difference.

    ## What to do
    Look at what differs on that rank: its part of the data, its disk, other processes on its
    cores, a throttled device; or longer sequences, which a sampler that sorts by length spreads
    evenly.

    ## When it is wrong
    Ranks that do different work by design (pipeline stages, sharded models, separate trainings) are
    left alone. Where the forward pass waits for other ranks too, the difference is hidden.
    """
    ranks = ranks_of(run)
    if not ranks or not all(is_data_parallel(p) and not is_sharded(p) for p in ranks):
        return
    times = {p.rank: t for p in ranks if (t := time_alone(run, p.rank)) is not None}
    if len(times) < 2 or len(times) < len(ranks):
        return
    level = {rank: float(np.median(t)) for rank, t in times.items()}
    slow = max(level, key=lambda rank: level[rank])
    others = float(np.median([v for rank, v in level.items() if rank != slow]))
    lost = level[slow] - others
    step = rank_series(run, slow, "time/step")
    whole = float(np.median(step.values)) if step is not None else 0.0
    if lost < max(LEAST_S, WORTH * whole) or not is_always_slower(times, slow):
        return
    data = rank_series(run, slow, "time/data") or rank_series(run, slow, "time/forward")
    assert data is not None
    part = where_time_is_lost(run, slow, list(times), lost)
    says = (
        f"rank {slow} spends {level[slow]:.3g} s per step {part}, the others {others:.3g} s "
        "(medians)"
    )
    claim = (
        f"Rank {slow} is a straggler: it spends {level[slow] / others:.1f} times as long as "
        f"the other ranks {part}"
    )
    yield finding(claim, "straggler-rank", cite(data, says, 0, -1, slow=level[slow], others=others))


def _ranks(*pairs: tuple[ArrayLike, ArrayLike], wrapper: str = "DistributedDataParallel") -> Run:
    series = {}
    for rank, (data, forward) in enumerate(pairs):
        prefix = f"ranks/{rank}/" if rank else ""
        series[f"{prefix}time/data"] = np.asarray(data)
        series[f"{prefix}time/forward"] = np.asarray(forward)
        series[f"{prefix}time/step"] = flat(len(np.asarray(data)), 0.3)
    model = Model(1, wrapper=wrapper, is_sharded=wrapper == "FSDP")
    bare = recorded(*(Process(models=(model,)) for _ in pairs))
    return replace(make_run(series), recording=bare.recording)


_QUICK = (flat(60, 0.01), flat(60, 0.1))
_SLOW_DATA = (flat(60, 0.2), flat(60, 0.1))
_SLOW_FORWARD = (flat(60, 0.01), flat(60, 0.19))

FIRES = {
    "waiting for data": _ranks(_QUICK, _SLOW_DATA),
    "a slow device among four": _ranks(_QUICK, _QUICK, _SLOW_FORWARD, _QUICK),
}

SILENT = {
    "equal": _ranks(_QUICK, _QUICK),
    "near miss: a little slower": _ranks(_QUICK, (flat(60, 0.01), flat(60, 0.13))),
    "near miss: slow only at first": _ranks(
        _QUICK, (np.r_[flat(25, 0.5), flat(35, 0.01)], flat(60, 0.1))
    ),
    "near miss: too few steps": _ranks((flat(9, 0.01), flat(9, 0.1)), (flat(9, 0.2), flat(9, 0.1))),
    "near miss: stages of a pipeline": _ranks(_QUICK, _SLOW_FORWARD, wrapper=""),
    "near miss: tiny steps": _ranks(
        (flat(60, 1e-4), flat(60, 5e-4)), (flat(60, 1e-3), flat(60, 5e-4))
    ),
}
