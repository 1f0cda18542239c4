"""Every rank trains on the very same batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx.analysis.recordings.ranks import is_data_parallel, ranks_of, training_loader
from traindx.examples import recorded
from traindx.model.findings import Finding, Strength, at, cite_record
from traindx.model.recording import Fingerprint, Loader, Model, Place, Process
from traindx.model.run import Run
from traindx.registry import detector

ENOUGH = 3  # steps that every rank tells of
NEARLY_ALL = 0.9


@detector(needs=("recording",), suggests=("missing-distributed-sampler",))
def check(run: Run) -> Iterator[Finding]:
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
    shared = _shared(ranks) if ranks else []
    equal = [prints for prints in shared if len({f.batch for f in prints}) == 1]
    if len(shared) < ENOUGH or len(equal) < NEARLY_ALL * len(shared):
        return
    if len({prints[0].batch for prints in equal}) == 1:
        return  # always the same one
    evidence = tuple(
        cite_record(p, f.line, f"rank {p.rank}, step {f.step}: batch {f.batch!r}", step=f.step)
        for prints in (equal[0], equal[-1])
        for p, f in zip(ranks[:2], prints[:2], strict=True)
    )
    same = f"{len(equal)} of {len(shared)} steps compared"
    if not all(is_data_parallel(p) for p in ranks):
        yield Finding(
            claim=f"All {len(ranks)} ranks train on the same batches ({same})",
            strength=Strength.WEAK,
            evidence=evidence,
            suggests={"missing-distributed-sampler": Strength.WEAK},
        )
        return
    loader = training_loader(ranks[0])
    sampler = f", drawn by {loader.sampler}" if loader is not None and loader.sampler else ""
    yield Finding(
        claim=f"All {len(ranks)} ranks train on the same batches ({same}{sampler})",
        strength=Strength.STRONG,
        evidence=evidence,
        shows="missing-distributed-sampler",
        is_symptom=True,
        onset=float(equal[0][0].step),
        location=at(loader.place) if loader is not None else None,
    )


def _shared(ranks: Sequence[Process]) -> list[list[Fingerprint]]:
    told = [{f.step: f for f in p.fingerprints if f.batch is not None} for p in ranks]
    steps = set.intersection(*(set(t) for t in told))
    return [[t[step] for t in told] for step in sorted(steps)]


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
