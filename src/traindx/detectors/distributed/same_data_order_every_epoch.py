from collections.abc import Sequence

from traindx.analysis.recordings.ranks import ranks_of
from traindx.analysis.recordings.replicas import (
    batches_at_same_position,
    shuffled_distributed_loader,
)
from traindx.examples import Epoch, Fingerprint, Loader, Place, Process, recorded
from traindx.registry import Findings, Run, cite_record, detector, finding

ENOUGH = 2  # pairs of batches at the same position of different epochs


@detector(needs=("recording",), suggests=("sampler-epoch-not-set",))
def check(run: Run) -> Findings:
    """A shuffling distributed sampler gives the same batches in every epoch.

    ## What it detects
    Batches at the same position of different epochs that hold the same values, at every position
    that can be compared, from a `DistributedSampler` that is meant to shuffle.

    ## Why it matters
    Every epoch repeats the same order, and every rank sees the same share of the data for ever.

    ## What to do
    `sampler.set_epoch(epoch)` at the top of every epoch.

    ## When it is wrong
    A dataset in which all examples are alike; so the batches of different positions have to
    differ. Without shuffling the order is meant, and nothing is said.
    """
    for process in ranks_of(run):
        loader = shuffled_distributed_loader(process)
        pairs = batches_at_same_position(process) if loader is not None else []
        if loader is None or len(pairs) < ENOUGH or any(a.batch != b.batch for a, b in pairs):
            continue
        if len({a.batch for a, _ in pairs}) < len(pairs):
            continue
        first, second = pairs[0]
        yield finding(
            f"The distributed sampler repeats its order in every epoch: on rank "
            f"{process.rank} step {second.step} has the batch of step {first.step}",
            "sampler-epoch-not-set",
            *(
                cite_record(process, f.line, f"step {f.step} has batch {f.batch!r}", step=f.step)
                for pair in pairs[:2]
                for f in pair
            ),
            onset=second.step,
            place=loader.place,
        )
        return


def _rank(batches: Sequence[float], *, shuffled: bool = True, size: int = 20) -> Process:
    steps = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
    loader = Loader(2, 0, "Images", sampler="DistributedSampler", is_shuffled=shuffled,
                    place=Place("train.py", 40))  # fmt: skip
    epochs = tuple(Epoch(9, 0, size, (i + 1) * size, trained=size) for i in range(13))
    prints = tuple(Fingerprint(20 + i, s, batch=batches[i]) for i, s in enumerate(steps))
    return Process(loaders=(loader,), epochs=epochs, fingerprints=prints)


# steps 4 and 64, 8 and 128, 16 and 256 are at the same position of an epoch of 20
_AGAIN = [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 0.4, 0.8, 1.6]
_NEW = [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6]

FIRES = {"again and again": recorded(_rank(_AGAIN), _rank(_AGAIN))}

SILENT = {
    "another order": recorded(_rank(_NEW), _rank(_NEW)),
    "near miss: not shuffled, on purpose": recorded(
        _rank(_AGAIN, shuffled=False), _rank(_AGAIN, shuffled=False)
    ),
    "near miss: the same batch everywhere": recorded(_rank([1.0] * 10), _rank([1.0] * 10)),
    "near miss: nothing to compare": recorded(_rank(_AGAIN, size=300), _rank(_AGAIN, size=300)),
    "one process": recorded(_rank(_AGAIN)),
}
