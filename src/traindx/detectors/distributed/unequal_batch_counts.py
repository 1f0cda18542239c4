from dataclasses import replace

from traindx.analysis.recordings.batch_counts import overtaken, uneven_loaders, uneven_passes
from traindx.analysis.recordings.ranks import (
    echoes_in,
    has_ended_well,
    is_data_parallel,
    ranks_of,
    standstills,
    training_loader,
)
from traindx.examples import Caught, Ending, Epoch, Loader, Model, Place, Process, recorded, stalled
from traindx.registry import Findings, Run, Strength, detector, finding


@detector(needs=("recording",), suggests=("uneven-inputs",))
def check(run: Run) -> Findings:
    """The ranks do not have the same number of batches in an epoch.

    ## What it detects
    Passes over the training data, or the lengths of the training loaders, that differ between
    ranks; or a rank that has finished its pass while another waits for it in the middle of the
    same one.

    ## Why it matters
    The rank with fewer batches leaves the loop, and the others wait in the next all-reduce for a
    partner that does not come: a hang at the end of the epoch, or, if it starts the next epoch
    instead, gradients that mix the two.

    ## What to do
    `drop_last=True` in the distributed sampler, an iterable dataset that stops at the smallest
    count, or `with model.join():` around the loop.

    ## When it is wrong
    Where the run ended well, the loop copes with it (`join`, or no collective in it), and nothing
    is said. Ranks that train apart from each other, without a wrapper, are left alone unless they
    hang.
    """
    ranks = ranks_of(run)
    if not ranks or has_ended_well(run):
        return
    still = [s for s in standstills(run) if s.waits_for_ranks]
    has_trouble = bool(still) or any(echoes_in(p) for p in ranks)
    found = uneven_passes(ranks) or uneven_loaders(ranks) or overtaken(ranks, still)
    if found is None or not (has_trouble or all(is_data_parallel(p) for p in ranks)):
        return
    claim, evidence = found
    loader = training_loader(ranks[0])
    yield finding(
        claim + (", and the ranks wait for each other" if has_trouble else ""),
        "uneven-inputs" if has_trouble else {"uneven-inputs": Strength.WEAK},
        *evidence,
        *(s.evidence() for s in still[:1]),
        strength=Strength.STRONG if has_trouble else Strength.WEAK,
        is_symptom=has_trouble,
        onset=float(still[0].stall.step) if still else None,
        place=loader.place if loader is not None else None,
    )


def _rank(
    *passes: int, length: int | None = None, stalled_at: int | None = None, broken: int = 0
) -> Process:
    epochs = [Epoch(20 + i, 1, n, trained=n, is_whole=True) for i, n in enumerate(passes)]
    epochs += [Epoch(40, 1, broken, trained=broken, is_whole=False)] if broken else []
    call = {"seq": 9, "op": "gloo:all_reduce", "group": "0", "is_retired": False}
    backward = Place("/home/me/train.py", 12, "main", "loss.backward()")
    still = stalled(backward, step=stalled_at or 0, collectives=(call,))
    return replace(
        still if stalled_at is not None else Process(),
        models=(Model(1, wrapper="DistributedDataParallel"),),
        loaders=(Loader(2, 1, "Texts", batches=length, place=Place("train.py", 8)),),
        epochs=tuple(epochs),
    )


_KILLED = Ending(signal=15)
_LOST = Caught(50, "RuntimeError", "Connection closed by peer [::1]:4321")

FIRES = {
    "a hang at the end of the epoch": recorded(
        _rank(length=11, stalled_at=10), _rank(10, length=10), ending=_KILLED
    ),
    "of unknown length": recorded(_rank(stalled_at=10), _rank(10), ending=_KILLED),
    "a lost connection": recorded(
        Process(loaders=_rank(length=11).loaders, caught=(_LOST,)), _rank(10, length=10)
    ),
    "passes differ, no end known: a remark": recorded(_rank(11, 11), _rank(10, 10)),
}

SILENT = {
    "equal": recorded(_rank(10, length=10), _rank(10, length=10), ending=_KILLED),
    "near miss: uneven, and it ended well": recorded(
        _rank(11, length=11), _rank(10, length=10), ending=Ending(exit_code=0)
    ),
    "near miss: it hangs in the middle": recorded(_rank(stalled_at=4), _rank(10), ending=_KILLED),
    "near miss: loaders of the same length": recorded(
        _rank(length=10, stalled_at=10), _rank(10, length=10), ending=_KILLED
    ),
    "near miss: broken off on one rank": recorded(_rank(10, broken=3), _rank(10, broken=4)),
}
