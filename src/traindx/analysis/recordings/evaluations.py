"""Forward passes that nothing is learnt from: what they are passes over."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isfinite

from traindx.model.findings import Evidence, cite_record
from traindx.model.recording import Evaluation, Loader, Process, Sample, Summary

REPEATED = 1.5  # passes per batch: dropout that samples predictions runs each batch many times
FEWEST_SAMPLES = 5
STEADY = 1.6  # at most, between the widest and the narrowest batch of training
EVALUATED = 2  # evaluations, or batches in the only one
InputKey = tuple[int | None, str, tuple[int, ...]]
TIMES = 2  # steps at which an evaluation without a loader was seen
NAMED = re.compile(
    r"(?:^|_)(?:eval|evaluate|evaluation|val|valid|validate|validation|test|accuracy|acc)(?:_|$)"
)
SAMPLES = re.compile(r"mc_|dropout|uncertain|ensemble|sample|action|train|stat|(?:^|_)bn")


def is_over_held_out_data(process: Process, record: Evaluation) -> bool:
    """Tell whether an evaluation went over a loader that nothing is trained on, each batch once."""
    passes = [e for e in process.epochs if e.loader == record.loader]
    trained_on = {e.loader for e in process.epochs if e.trained > 0}
    if record.loader is None or not passes or record.loader in trained_on or not trained_on:
        return False
    if record.forwards > REPEATED * max(e.batches for e in passes):
        return False
    loaders = {x.id: x for x in process.loaders}
    own = loaders.get(record.loader)
    same = (loaders[i] for i in trained_on if i in loaders)
    return own is None or not any(_is_same_data(own, other) for other in same)


def _is_same_data(one: Loader, other: Loader) -> bool:
    return one.size is not None and (one.dataset, one.size) == (other.dataset, other.size)


def training_inputs(samples: Iterable[Sample]) -> dict[InputKey, list[Summary]]:
    """Return the inputs of training steps, by the module and the input that they entered."""
    found: dict[InputKey, list[Summary]] = defaultdict(list)
    for sample in samples:
        for given in sample.inputs:
            if _is_comparable(given):
                found[_key(sample.entered, given)].append(given)
    return found


def evaluation_inputs(process: Process) -> dict[InputKey, list[tuple[Evaluation, Summary]]]:
    """Return the inputs of evaluations over held-out data, by what they entered."""
    found: dict[InputKey, list[tuple[Evaluation, Summary]]] = defaultdict(list)
    for evaluation in process.evaluations:
        if evaluation.has_grad or not is_over_held_out_data(process, evaluation):
            continue
        for given in evaluation.inputs:
            if _is_comparable(given):
                found[_key(evaluation.entered, given)].append((evaluation, given))
    return {
        key: seen
        for key, seen in found.items()
        if len(seen) >= EVALUATED or seen[0][0].forwards >= EVALUATED
    }


def _key(entered: int | None, given: Summary) -> InputKey:
    return entered, given.name, given.shape[1:]


def _is_comparable(given: Summary) -> bool:
    """Tell whether an input has examples whose values are a matter of scale."""
    is_measured = isfinite(given.mean) and isfinite(given.std) and given.std > 0
    return is_measured and "float" in given.dtype and len(given.shape) > 1 and given.shape[0] > 1


def is_steady(usual: list[Summary]) -> bool:
    """Tell whether the inputs of training keep one spread."""
    spreads = [s.std for s in usual]
    return len(usual) >= FEWEST_SAMPLES and max(spreads) <= STEADY * min(spreads)


def spread_factor(usual: list[Summary], given: Summary) -> float:
    """Return by how much a spread lies outside those of training."""
    widest, narrowest = max(s.std for s in usual), min(s.std for s in usual)
    return max(given.std / widest, narrowest / given.std)


def is_live(record: Evaluation) -> bool:
    """Tell whether an evaluation ran in training mode with layers that mind it."""
    return record.is_training and bool(record.live) and not record.has_grad


def is_named_evaluation(process: Process, record: Evaluation) -> bool:
    """Tell whether the program evaluates without a loader, again and again, always like this."""
    function = record.place.function.lower() if record.place is not None else ""
    if record.loader is not None or not NAMED.search(function) or SAMPLES.search(function):
        return False
    same = [
        e
        for e in process.evaluations
        if e.model == record.model and e.place is not None and e.place.function.lower() == function
    ]
    return all(map(is_live, same)) and len({e.step for e in same}) >= TIMES


def is_over_idle_loader(process: Process, record: Evaluation) -> bool:
    """Tell whether an evaluation went over a loader that nothing is trained on."""
    trained_on = {e.loader for e in process.epochs if e.trained > 0}
    known = {e.loader for e in process.epochs}
    return record.loader in known - trained_on


def longest_in_eval_mode(samples: Sequence[Sample]) -> list[Sample]:
    """The longest stretch of samples in evaluation mode."""
    best: list[Sample] = []
    current: list[Sample] = []
    for sample in samples:
        is_eval = sample.is_training is False and bool(sample.evaluating)
        current = [*current, sample] if is_eval else []
        best = current if len(current) > len(best) else best
    return best


def cite_eval_steps(
    process: Process, run: list[Sample], before: Sequence[Evaluation]
) -> tuple[Evidence, ...]:
    """Cite steps in evaluation mode, and the evaluation before them."""
    first = run[0]
    says = f"{len(run)} sampled steps in a row with the model in evaluation mode"
    evidence = [cite_record(process, first.line, says, step=first.step, samples=len(run))]
    for record in before:
        says = f"the evaluation before it, with {record.forwards} forward passes"
        evidence.append(cite_record(process, record.line, says, step=record.step))
    return tuple(evidence)
