from dataclasses import replace

from traindx.analysis.recordings.ranks import is_data_parallel, is_sharded, ranks_of, shared_prints
from traindx.analysis.recordings.replicas import (
    cite_divided_data,
    cite_sums,
    differ,
    is_averaged,
    layout_of,
)
from traindx.examples import recorded, with_source
from traindx.model.recording import Fingerprint, Model, Optimizer, Parameter, Process
from traindx.registry import Findings, Run, Strength, detector, finding

ENOUGH = 2  # steps with a difference, after the first one


@detector(needs=("recording",), suggests=("rank-desync",))
def check(run: Run) -> Findings:
    """The parameters differ between ranks that should hold the same model.

    ## What it detects
    Fingerprints of the parameters, taken at the same steps on every rank, that differ from some
    step on and never agree again. In a model under DistributedDataParallel they are equal to the
    last bit.

    ## Why it matters
    Each rank trains a model of its own from then on; the gradients that are averaged belong to
    different weights, and what is saved is rank 0's.

    ## What to do
    Load and initialise before wrapping and on every rank; call the wrapped model and not
    `.module`; broadcast after a change by hand.

    ## When it is wrong
    Sharded models differ by design and are left alone, as are optimizers that let replicas drift
    and average them. Without a wrapper the ranks may be separate trainings on purpose: then it is a
    remark only, unless the program divides its data among them. Experts that live on one rank each
    look the same as a fault.
    """
    ranks = ranks_of(run)
    if not ranks or any(is_sharded(p) or is_averaged(p) for p in ranks):
        return
    if len({layout_of(p) for p in ranks}) != 1:
        return  # parts of one model, or different models
    shared = {s: prints for s, prints in shared_prints(ranks, "parameters").items() if s > 0}
    apart = [step for step, prints in shared.items() if differ(ranks, prints)]
    lasting = [step for step in shared if apart and step >= apart[0]]
    if len(apart) < ENOUGH or apart != lasting:
        return
    evidence = (*cite_sums(ranks, shared[apart[0]]), *cite_sums(ranks, shared[apart[-1]]))
    if all(is_data_parallel(p) for p in ranks):
        claim = f"The parameters of the ranks differ from step {apart[0]} on"
        yield finding(claim, "rank-desync", *evidence, onset=apart[0])
        return
    divided = cite_divided_data(run)
    strength = Strength.WEAK if divided is None else Strength.STRONG
    yield finding(
        f"Each of the {len(ranks)} ranks trains its own weights, without DDP to sync them",
        {"rank-desync": strength},
        *evidence if divided is None else (*evidence, divided),
        strength=strength,
        is_symptom=divided is not None,
        onset=apart[0],
    )


def _rank(prints: dict[int, float], wrapper: str = "DistributedDataParallel") -> Process:
    model = Model(1, parameters=(Parameter("weight", (4, 4)),), wrapper=wrapper)
    left = tuple(Fingerprint(10 + s, s, parameters=v) for s, v in prints.items())
    return Process(models=(model,), fingerprints=left)


def _averaging(prints: dict[int, float]) -> Process:
    return replace(_rank(prints), optimizers=(Optimizer(2, type="PostLocalSGDOptimizer"),))


_SAME = {1: 1.5, 10: 1.25, 100: 1.75}
_OTHER = {1: 1.5, 10: 1.2500000001, 100: 1.5}
_BY_HAND = """
sampler = DistributedSampler(data)
for p in model.parameters():
    dist.all_reduce(p.data)
"""

FIRES = {
    "apart from step 10 on": recorded(_rank(_SAME), _rank(_OTHER)),
    "no wrapper: a remark": recorded(_rank(_SAME, ""), _rank(_OTHER, "")),
    "no wrapper, and parts of the data": with_source(
        recorded(_rank(_SAME, ""), _rank(_OTHER, "")), "sampler = DistributedSampler(data)"
    ),
    "parts of the data, and weights that meet by hand: a remark": with_source(
        recorded(_rank(_SAME, ""), _rank(_OTHER, "")), _BY_HAND
    ),
}

SILENT = {
    "equal": recorded(_rank(_SAME), _rank(_SAME)),
    "near miss: only before the first step": recorded(
        _rank({0: 1.0, 10: 1.25, 100: 1.75}), _rank({0: 2.0, 10: 1.25, 100: 1.75})
    ),
    "near miss: equal again": recorded(_rank(_SAME), _rank({1: 1.5, 10: 1.2, 100: 1.75})),
    "near miss: averaged now and then": recorded(_averaging(_SAME), _averaging(_OTHER)),
    "near miss: sharded": recorded(
        *(replace(_rank(p), models=(Model(1, is_sharded=True),)) for p in (_SAME, _OTHER))
    ),
    "one rank": recorded(_rank(_SAME)),
}
