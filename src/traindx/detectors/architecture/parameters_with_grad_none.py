"""Parameters that the loss does not depend on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from traindx.analysis.recordings.traces import (
    Trace,
    is_below,
    latest_models,
    named,
    reached,
    share,
    told_once,
    traces_of,
    unreached,
)
from traindx.examples import recorded, watched, weights
from traindx.model.findings import Finding, Strength, cite_record
from traindx.model.recording import Process
from traindx.model.run import Run
from traindx.registry import detector

ENOUGH = 4  # samples: a head that is used in turns, or from some step on, shows up by then
# parts that library models carry for other tasks
_SPARE = re.compile(r"pooler|mask_token|masked_spec_embed|position|token_type", re.IGNORECASE)
MOST = 0.5  # of the numbers of the model
NEGLIGIBLE = 1e-3  # of the numbers: a mask token, a spare embedding


@detector(needs=("recording",), suggests=("unused-parameters", "detached-loss"))
def check(run: Run) -> Iterator[Finding]:
    """Parameters that are to be trained never get a gradient.

    ## What it detects
    Trainable parameters that an optimizer holds and that had no gradient at all in any of four or
    more sampled steps of it, beside others that had one.

    ## Why it matters
    They cannot learn. A layer that is made and not called, or whose output goes nowhere, is a
    mistake in `forward`; under DistributedDataParallel it is an error.

    ## What to do
    Use it in `forward`, or remove it. If it is meant to rest, freeze it.

    ## When it is wrong
    Library models carry parts that a task does not use (a pooler, a mask token), which are left
    alone. A head may come into use later: unless most of the model is concerned, this is a remark.
    """
    yield from told_once(run, _look)


def _look(process: Process) -> Iterator[Finding]:
    for model, idle in unreached(process, ENOUGH).items():
        used = reached(process, model)
        matrices = [t for t in idle if t.is_matrix]
        if not used or not matrices or is_below(idle, used):
            continue  # a cut through the model is another matter
        whole = [t for t in traces_of(process) if t.model.id == model]
        part = share(idle, whole)
        is_habit = part < MOST and all(_SPARE.search(t.name) for t in matrices)
        if part >= NEGLIGIBLE and not is_habit:
            yield _finding(process, model, idle, part)


def _finding(process: Process, model: int, idle: Sequence[Trace], part: float) -> Finding:
    record = next(m for m in latest_models(process) if m.id == model)
    is_most = part > MOST
    sample = idle[0].samples[0]
    says = f"no gradient in {len(idle[0].samples)} samples for {named(idle)} ({part:.1%} of it)"
    suggests = {"unused-parameters": Strength.MODERATE}
    if is_most:
        suggests = {"unused-parameters": Strength.STRONG, "detached-loss": Strength.WEAK}
    return Finding(
        claim=f"The loss does not depend on {part:.1%} of {record.type}: {named(idle)}",
        strength=Strength.STRONG if is_most else Strength.MODERATE,
        evidence=(cite_record(process, sample.line, says, step=sample.step, share=part),),
        suggests=suggests,
        is_symptom=is_most,
        onset=float(sample.step),
    )


_NAMES = ("stem.weight", "aux.weight", "body.weight", "head.weight")


def _process(aux: float | None, count: int = 6) -> Process:
    still = () if aux is not None else ("aux.weight",)
    return watched(*weights(*_NAMES), grads=(0.1, aux, 0.1, 0.1), still=still, count=count)


def _in_turns() -> Process:
    process = _process(None)
    told = (
        replace(s, grad_norms=(0.1, 0.1 if i == 4 else None, 0.1, 0.1))
        for i, s in enumerate(process.samples)
    )
    return replace(process, samples=tuple(told))


def _adversarial() -> Process:
    """Two networks; the steps of each optimizer give gradients to its own."""
    first, second = weights("gen.weight", "gen2.weight"), weights("d.weight", "d2.weight")
    second = [replace(p, optimizer=1) for p in second]
    process = watched(*first, *second)
    told = tuple(
        replace(s, optimizer=i % 2, grad_norms=(0.1, 0.1, None, None)[:: 1 if i % 2 == 0 else -1])
        for i, s in enumerate(process.samples)
    )
    return replace(process, samples=told)


FIRES = {
    "a layer in the middle: a remark": recorded(_process(None)),
    "most of the model": recorded(
        watched(*weights(*_NAMES), grads=(0.1, None, None, None), still=_NAMES[1:])
    ),
}

SILENT = {
    "all used": recorded(_process(0.1)),
    "near miss: used in turns": recorded(_in_turns()),
    "near miss: a pooler that the task does not use": recorded(
        watched(
            *weights("body.0.weight", "pooler.weight", "head.weight"),
            grads=(0.1, None, 0.1),
            still=("pooler.weight",),
        )
    ),
    "near miss: few samples": recorded(_process(None, count=3)),
    "near miss: a bias before batch norm has a gradient of about zero": recorded(_process(1e-12)),
    "near miss: two networks in turns": recorded(_adversarial()),
}
