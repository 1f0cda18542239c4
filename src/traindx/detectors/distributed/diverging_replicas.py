"""The replicas of a model are no longer the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.rank_exchange import (
    brings_weights_together,
    gives_parts_of_data,
)
from traindx.analysis.recordings.ranks import is_data_parallel, is_sharded, ranks_of
from traindx.examples import make_run, recorded
from traindx.model.findings import Evidence, Finding, Strength, cite_record
from traindx.model.recording import Fingerprint, Model, Optimizer, Parameter, Process
from traindx.model.run import Run
from traindx.registry import detector

ENOUGH = 2  # steps with a difference, after the first one
# between machines the same update may round differently; a real difference grows far beyond
ROUNDING = 1e-6
AVERAGED = ("localsgd", "hierarchical", "averag", "diloco", "federat")  # apart between meetings


@detector(needs=("recording",), suggests=("rank-desync",))
def check(run: Run) -> Iterator[Finding]:
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
    if not ranks or any(is_sharded(p) or _is_averaged(p) for p in ranks):
        return
    if len({_layout(p) for p in ranks}) != 1:
        return  # parts of one model, or different models
    shared = _shared(ranks)
    apart = [step for step, prints in shared if _differ(ranks, prints)]
    lasting = [step for step, _ in shared if apart and step >= apart[0]]
    if len(apart) < ENOUGH or apart != lasting:
        return
    is_replica = all(is_data_parallel(p) for p in ranks)
    first, last = dict(shared)[apart[0]], dict(shared)[apart[-1]]
    evidence = (*_cite(ranks, first), *_cite(ranks, last))
    if is_replica:
        claim = f"The parameters of the ranks differ from step {apart[0]} on"
        yield Finding(
            claim=claim,
            strength=Strength.STRONG,
            evidence=evidence,
            shows="rank-desync",
            is_symptom=True,
            onset=float(apart[0]),
        )
        return
    divided = _divided_data(run)
    strength = Strength.WEAK if divided is None else Strength.STRONG
    yield Finding(
        claim=f"Each of the {len(ranks)} ranks trains weights of its own: nothing keeps them equal",
        strength=strength,
        evidence=evidence if divided is None else (*evidence, divided),
        suggests={"rank-desync": strength},
        is_symptom=divided is not None,
        onset=float(apart[0]),
    )


def _divided_data(run: Run) -> Evidence | None:
    """Return where the ranks are given different parts of one dataset: they train one model.

    Nothing where weights or gradients are brought together by hand, be it now and then.
    """
    program = program_of(run)
    if not run.sources or any(map(brings_weights_together, program.stories)):
        return None
    sampler = gives_parts_of_data(program)
    return None if sampler is None else sampler.cite("each rank is given a part of the data")


def _is_averaged(process: Process) -> bool:
    kinds = [o.type.lower().replace("_", "") for o in process.optimizers]
    return any(word in kind for kind in kinds for word in AVERAGED)


def _layout(process: Process) -> tuple[tuple[tuple[int, ...], ...], ...]:
    latest = {m.id: m for m in process.models}
    return tuple(tuple(p.shape for p in m.parameters) for _, m in sorted(latest.items()))


def _shared(ranks: Sequence[Process]) -> list[tuple[int, list[Fingerprint]]]:
    """Return the steps after the first at which every rank left a fingerprint."""
    told = [{f.step: f for f in p.fingerprints if f.parameters is not None} for p in ranks]
    steps = set.intersection(*(set(t) for t in told))
    return [(step, [t[step] for t in told]) for step in sorted(steps) if step > 0]


def _differ(ranks: Sequence[Process], prints: Sequence[Fingerprint]) -> bool:
    values = [f.parameters for f in prints if f.parameters is not None]
    if any(isnan(v) for v in values):
        return False  # broken weights are another matter
    is_one_host = len({p.host for p in ranks}) == 1
    allowed = 0.0 if is_one_host else ROUNDING * max(abs(v) for v in values)
    return max(values) - min(values) > allowed


def _cite(ranks: Sequence[Process], prints: Sequence[Fingerprint]) -> Iterator[Evidence]:
    for process, found in zip(ranks[:3], prints[:3], strict=True):
        value = found.parameters or 0.0
        says = f"rank {process.rank}, step {found.step}: parameters sum up to {value!r}"
        yield cite_record(process, found.line, says, step=found.step)


def _rank(prints: dict[int, float], wrapper: str = "DistributedDataParallel") -> Process:
    model = Model(1, parameters=(Parameter("weight", (4, 4)),), wrapper=wrapper)
    told = tuple(Fingerprint(10 + s, s, parameters=v) for s, v in prints.items())
    return Process(models=(model,), fingerprints=told)


def _averaging(prints: dict[int, float]) -> Process:
    ddp = _rank(prints)
    return Process(
        models=ddp.models,
        fingerprints=ddp.fingerprints,
        optimizers=(Optimizer(2, type="PostLocalSGDOptimizer"),),
    )


def _with_source(run: Run, text: str) -> Run:
    return replace(run, sources=make_run(sources={"train.py": text}).sources)


_SAME = {1: 1.5, 10: 1.25, 100: 1.75}
_OTHER = {1: 1.5, 10: 1.2500000001, 100: 1.5}

FIRES = {
    "apart from step 10 on": recorded(_rank(_SAME), _rank(_OTHER)),
    "no wrapper: a remark": recorded(_rank(_SAME, ""), _rank(_OTHER, "")),
    "no wrapper, and parts of the data": _with_source(
        recorded(_rank(_SAME, ""), _rank(_OTHER, "")), "sampler = DistributedSampler(data)"
    ),
}

_BY_HAND = """
sampler = DistributedSampler(data)
for p in model.parameters():
    dist.all_reduce(p.data)
"""

FIRES["parts of the data, and weights that meet by hand: a remark"] = _with_source(
    recorded(_rank(_SAME, ""), _rank(_OTHER, "")), _BY_HAND
)

SILENT = {
    "equal": recorded(_rank(_SAME), _rank(_SAME)),
    "near miss: only before the first step": recorded(
        _rank({0: 1.0, 10: 1.25, 100: 1.75}), _rank({0: 2.0, 10: 1.25, 100: 1.75})
    ),
    "near miss: equal again": recorded(_rank(_SAME), _rank({1: 1.5, 10: 1.2, 100: 1.75})),
    "near miss: averaged now and then": recorded(_averaging(_SAME), _averaging(_OTHER)),
    "near miss: sharded": recorded(
        *(
            Process(models=(Model(1, is_sharded=True),), fingerprints=_rank(p).fingerprints)
            for p in (_SAME, _OTHER)
        )
    ),
    "one rank": recorded(_rank(_SAME)),
}
