import re
from collections.abc import Sequence

from traindx.analysis.recordings.traces import (
    Trace,
    is_below,
    latest_models,
    named,
    per_process,
    reached,
    share,
    traces_of,
    unreached,
)
from traindx.examples import recorded, resampled, watched, weights
from traindx.model.recording import Process
from traindx.registry import Finding, Findings, Strength, cite_record, detector, finding

ENOUGH = 4  # samples: a head that is used in turns, or from some step on, shows up by then
# parts that library models carry for other tasks
_SPARE = re.compile(r"pooler|mask_token|masked_spec_embed|position|token_type", re.IGNORECASE)
MOST = 0.5  # of the numbers of the model
NEGLIGIBLE = 1e-3  # of the numbers: a mask token, a spare embedding


@detector(needs=("recording",), suggests=("unused-parameters", "detached-loss"))
@per_process
def check(process: Process) -> Findings:
    """Trainable parameters never get a gradient.

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
    says = f"no gradient in {len(idle[0].samples)} samples for {named(idle)}"
    suggests = {"unused-parameters": Strength.MODERATE}
    if is_most:
        suggests = {"unused-parameters": Strength.STRONG, "detached-loss": Strength.WEAK}
    return finding(
        f"{part:.1%} of the parameters of {record.type} never get a gradient: {named(idle)}",
        suggests,
        cite_record(process, sample.line, says, step=sample.step, share=part),
        strength=Strength.STRONG if is_most else Strength.MODERATE,
        is_symptom=is_most,
    )


_NAMES = ("stem.weight", "aux.weight", "body.weight", "head.weight")


def _process(aux: float | None, count: int = 6) -> Process:
    still = () if aux is not None else ("aux.weight",)
    return watched(*weights(*_NAMES), grads=(0.1, aux, 0.1, 0.1), still=still, count=count)


def _in_turns() -> Process:
    grads = [(0.1, 0.1 if i == 4 else None, 0.1, 0.1) for i in range(6)]
    return resampled(_process(None), grad_norms=lambda i: grads[i])


def _adversarial() -> Process:
    """Two networks; the steps of each optimizer give gradients to its own."""
    first = weights("gen.weight", "gen2.weight")
    second = weights("d.weight", "d2.weight", optimizer=1)
    grads = [(0.1, 0.1, None, None), (None, None, 0.1, 0.1)] * 3
    fields = {"optimizer": lambda i: i % 2, "grad_norms": lambda i: grads[i]}
    return resampled(watched(*first, *second), **fields)


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
