from collections.abc import Sequence

from traindx.analysis.recordings.ranks import (
    is_data_parallel,
    ranks_of,
    shared_prints,
    training_loader,
)
from traindx.examples import Fingerprint, Loader, Model, Place, Process, recorded
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding, suggested

CAUSE = "missing-distributed-sampler"
ENOUGH = 3  # steps that every rank tells of
NEARLY_ALL = 0.9


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """All ranks got the same batches at the same steps.

    ## What it detects
    Fingerprints of the batches that are equal on all ranks at nearly every step that can be
    compared, while they change from step to step.

    ## Why it matters
    All ranks compute the same gradient: N devices do the work of one, and an epoch takes as many
    steps as on one device.

    ## What to do
    A `DistributedSampler` for the training loader and `set_epoch` in every epoch; an iterable
    dataset has to be divided by rank and by worker.

    ## When it is wrong
    With tensor or pipeline parallelism the ranks share their data on purpose; so nothing more than
    a remark is made unless the model is under DistributedDataParallel. One batch that is trained on
    again and again, as in a test or a benchmark, is left alone.
    """
    ranks = ranks_of(run)
    shared = list(shared_prints(ranks, "batch").values())
    equal = [prints for prints in shared if len({f.batch for f in prints}) == 1]
    if len(shared) < ENOUGH or len(equal) < NEARLY_ALL * len(shared):
        return
    if len({prints[0].batch for prints in equal}) == 1:
        return  # always the same one
    evidence = tuple(
        cite_record(p, f.line, f"rank {p.rank} has batch {f.batch!r} at step {f.step}", step=f.step)
        for prints in (equal[0], equal[-1])
        for p, f in zip(ranks[:2], prints[:2], strict=True)
    )
    same = f"at {len(equal)} of {len(shared)} compared steps"
    is_meant = all(is_data_parallel(p) for p in ranks)
    loader = training_loader(ranks[0]) if is_meant else None
    sampler = f", sampled by {loader.sampler}" if loader is not None and loader.sampler else ""
    yield finding(
        f"All {len(ranks)} ranks train on the same batches ({same}{sampler})",
        CAUSE if is_meant else suggested(weak=CAUSE),
        *evidence,
        strength=Strength.STRONG if is_meant else Strength.WEAK,
        is_symptom=is_meant,
        place=loader.place if loader is not None else None,
    )


def _rank(prints: Sequence[float], wrapper: str = "DistributedDataParallel") -> Process:
    return Process(
        models=(Model(1, wrapper=wrapper),),
        loaders=(Loader(2, 1, sampler="RandomSampler", place=Place("train.py", 30)),),
        fingerprints=tuple(Fingerprint(10 + i, i, batch=v) for i, v in enumerate(prints)),
    )


_ONE, _TWO = [0.3, -1.2, 0.7, 2.2], [1.1, 0.2, -0.5, 3.0]

FIRES = {
    "the same everywhere": recorded(_rank(_ONE), _rank(_ONE)),
    "no wrapper: a remark": recorded(_rank(_ONE, ""), _rank(_ONE, "")),
}

SILENT = {
    "different": recorded(_rank(_ONE), _rank(_TWO)),
    "near miss: one batch again and again": recorded(_rank([0.3] * 5), _rank([0.3] * 5)),
    "near miss: too few steps to tell": recorded(_rank(_ONE[:2]), _rank(_ONE[:2])),
    "near miss: equal now and then": recorded(_rank(_ONE), _rank([0.3, 0.9, 0.7, 1.0])),
    "one rank": recorded(_rank(_ONE)),
}
