import re
from dataclasses import replace
from itertools import pairwise

import numpy as np

from traindx.analysis.metrics.loss_scales import REDUCED, USELESS, skips_to_the_end
from traindx.examples import decay, logged, make_run
from traindx.model.findings import Evidence, cite_event
from traindx.model.run import Event, Failure, Series
from traindx.registry import Finding, Findings, Run, Strength, cite, detector, finding

CAUSE = "loss-scale-collapse"
HALVINGS = 6  # in the last part of the run, without a doubling between them
FEW = 5  # points in a row, before a scale means anything
AT_THE_FLOOR = 4  # skips in a row at a scale of one: what overflows there overflows for good
SMALL = 4.0  # a scale that a scaler at work never comes near, and that halves on
MANY_SKIPS = 8  # at the start of a run a scaler skips a few steps to find its scale
ATTEMPT = re.compile(r"(?i)attempted loss scale: ?([\d.e+-]+)")  # DeepSpeed, at each skipped step
# how DeepSpeed, fairseq, icefall and their kin give up
GAVE_UP = re.compile(
    r"(?i)minimum loss scale|loss[ _]scale (?:already )?(?:is )?at (?:its )?minimum"
    r"|(?:loss|grad)[ _]scale is too small"
)


@detector(needs=("loss_scale|events|failure",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The loss scale halves again and again, and steps are skipped.

    ## What it detects
    A gradient scale that ends at one or below after falling from a healthy level or step after
    step, a log in which overflow skips step after step until the end, also where the scale is at
    its floor already, or a trainer that gives up because its scale is at the minimum.

    ## Why it matters
    Each halving is a step that was thrown away because a gradient was not finite. Lowering the
    scale cannot help when the gradients are infinite or NaN without it.

    ## What to do
    Find the operation that overflows and keep it in float32, or train in bfloat16.

    ## When it is wrong
    The scale starts high on purpose and halves a few times at the beginning; that is left alone.
    """
    scale = run.get("loss_scale")
    fallen = list(_by_scale(scale.finite())) if scale is not None and len(scale) >= FEW else []
    skips = [e for e in run.events if e.kind == "skipped-step"]
    gave_up = next((f for f in run.failures if GAVE_UP.search(f.message)), None)
    told = () if gave_up is None else (_cite_failure(gave_up),)
    if fallen:
        yield from (replace(f, evidence=(*f.evidence, *told)) for f in fallen)
    elif gave_up is not None:
        yield finding(
            "Training stopped because the loss scale reached its minimum",
            CAUSE,
            *told,
            *(cite_event(e) for e in skips[-1:]),
            onset=gave_up.step,
        )
    elif scale is not None and (stuck := _overflows_at_the_floor(scale, skips)) is not None:
        yield stuck
    elif (falling := _halves_on(skips)) is not None:
        yield falling
    elif scale is None and len(skips) >= MANY_SKIPS and skips_to_the_end(run, skips):
        claim = f"{len(skips)} steps were skipped because of gradient overflow"
        yield finding(claim, CAUSE, cite_event(skips[0]), cite_event(skips[-1]))


def _overflows_at_the_floor(scale: Series, skips: list[Event]) -> Finding | None:
    """Steps that are skipped where there is nothing left to scale: each logged point is a skip."""
    values = scale.finite().values[-FEW:]
    last = [e for e in skips if (m := ATTEMPT.search(e.text)) and float(m[1]) <= USELESS][-FEW:]
    if min(len(values), len(last)) < AT_THE_FLOOR or bool((values > USELESS).any()):
        return None
    claim = f"Gradients overflow even at a loss scale of {values[-1]:.3g}"
    return finding(claim, CAUSE, cite_event(last[0]), cite_event(last[-1]))


def _halves_on(skips: list[Event]) -> Finding | None:
    """Skips in a row, each from where the last one left the scale, down to next to nothing."""
    last = skips[-FEW:]
    steps = [
        (float(a[1]), float(b[1]))
        for e in last
        if (a := ATTEMPT.search(e.text)) and (b := REDUCED.search(e.text))
    ]
    is_chain = all(before[1] == after[0] for before, after in pairwise(steps))
    if len(steps) < FEW or not is_chain or not USELESS < steps[-1][1] <= SMALL:
        return None
    claim = f"The loss scale halves step after step, down to {steps[-1][1]:.3g}"
    return finding(claim, {CAUSE: Strength.STRONG}, cite_event(last[0]), cite_event(last[-1]))


def _cite_failure(failure: Failure) -> Evidence:
    text = failure.message.split("\n", 1)[0][:200]
    return Evidence(f"{failure.type}: {text}", failure.artifact, failure.locator)


def _by_scale(scale: Series) -> Findings:
    values = scale.values
    if not len(values):
        return
    top, end = float(values.max()), float(values[-1])
    falls = np.flatnonzero(np.diff(values) < 0)
    rises = np.flatnonzero(np.diff(values) > 0)
    run_of_falls = falls[falls > (rises[-1] if len(rises) else -1)]
    # a log that begins late shows the last of the halvings only; a weight that fades is no scale
    halves = values[run_of_falls + 1] <= 0.5 * values[run_of_falls]
    is_halved = len(run_of_falls) >= HALVINGS and bool(np.all(halves))
    # steps that were skipped are not told: what is left of a scaler's are powers of two
    is_scaler = bool(np.all(np.frexp(values)[0] == 0.5))
    is_gone = end <= USELESS and (top >= 100 * USELESS or is_halved or is_scaler)
    # logs are sparse: one logged fall may stand for many halvings
    halvings = np.log2(top / end) if end > 0 else np.inf
    if not is_gone or halvings < HALVINGS or not len(run_of_falls):
        return
    start = int(run_of_falls[0])
    says = (
        f"{scale.origin.name} fell from {values[start]:.4g} to {end:.4g} since {scale.when(start)}"
    )
    evidence = cite(scale, says, start, -1, before=float(values[start]), end=end)
    yield finding(f"The loss scale collapsed to {end:.3g}", CAUSE, evidence)


_MESSAGE = "Minimum loss scale reached (0.0001)."

_SKIP = Event(
    "skipped-step", "OVERFLOW! Skipping step. Attempted loss scale: 1, reducing to 1", "a", "line 9"
)
_APEX = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to "
_SPARE = replace(_SKIP, text="OVERFLOW! Skipping step. Attempted loss scale: 65536, reducing to 1")

_HALVING = [
    Event(
        "skipped-step",
        f"OVERFLOW! Skipping step. Attempted loss scale: {2**i}, reducing to {2 ** (i - 1)}",
        "a",
        f"line {9 - i}",
    )
    for i in range(20, 0, -1)
]

FIRES = {
    "a log that begins late and ends early": make_run(events=_HALVING[-6:-1]),
    "apex ends below one": make_run(
        events=[Event("skipped-step", f"{_APEX}{2.0**-i}", "a", f"line {i}") for i in range(9)]
    ),
    "begins at the floor, and every step is skipped": logged(
        loss_scale=np.ones(8), events=[_SKIP] * 8
    ),
    "begins late and halves to nothing": logged(loss_scale=0.25 * 0.5 ** np.arange(10)),
    "only the steps that were not skipped": logged(
        loss_scale=[0.125, 0.0625, 0.015625, 0.015625, 0.0078125, 2.0**-14]
    ),
    "gives up": make_run(failures=[Failure("FloatingPointError", _MESSAGE, "train.log", "line 9")]),
    "halves to nothing": logged(
        loss_scale=np.concatenate([np.full(20, 65536.0), 65536.0 * 0.5 ** np.arange(40)])
    ),
}

SILENT = {
    "near miss: halves on far above": make_run(events=_HALVING[:12]),
    "near miss: single halvings, each after a rise": make_run(events=[_HALVING[-2]] * 6),
    "near miss: finds its level at the start": logged(
        loss_scale=[65536.0, 32768, 16384, 8192, 8192, 8192, 16384, 16384]
    ),
    "near miss: the weight of a loss that fades": logged(loss_scale=0.8 ** np.arange(30.0)),
    "near miss: another error": make_run(
        failures=[Failure("RuntimeError", "the loss scale is not a number", "train.log", "line 9")]
    ),
    "near miss: apex tries a higher scale every two thousand steps": logged(
        loss_train=decay(200),
        events=[
            Event("skipped-step", f"{_APEX}131072.0", "a", f"line {i}", step=float(i))
            for i in range(9, 200, 10)
        ],
    ),
    "near miss: at one, and skipped long ago from above": logged(
        loss_scale=np.ones(8), events=[_SPARE] * 5
    ),
    "steady": logged(loss_scale=np.full(30, 1024.0)),
    "not used: always one": logged(loss_scale=np.ones(30)),
}
