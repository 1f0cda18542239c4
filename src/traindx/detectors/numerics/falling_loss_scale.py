import re
from dataclasses import replace

import numpy as np

from traindx.analysis.errors.culprits import cite_failure
from traindx.analysis.metrics.loss_scales import (
    FEW,
    collapse_start,
    halved_to,
    skips_at_the_floor,
    skips_to_the_end,
)
from traindx.examples import decay, logged, make_run
from traindx.model.findings import Evidence, cite_event
from traindx.model.run import Event, Failure, Series
from traindx.registry import Finding, Findings, Run, cite, detector, finding, suggested

CAUSE = "loss-scale-collapse"
MANY_SKIPS = 8  # at the start of a run a scaler skips a few steps to find its scale
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
    start = collapse_start(scale.finite()) if scale is not None and len(scale) >= FEW else None
    skips = [e for e in run.events if e.kind == "skipped-step"]
    ends = [cite_event(e) for e in (*skips[-FEW:][:1], *skips[-1:])]
    gave_up = next((f for f in run.failures if GAVE_UP.search(f.message)), None)
    told = () if gave_up is None else (cite_failure(run, gave_up),)
    if scale is not None and start is not None:
        yield _collapsed(scale.finite(), start, told)
    elif gave_up is not None:
        claim = "Training stopped because the loss scale reached its minimum"
        yield finding(claim, CAUSE, *told, *ends[-1:], onset=gave_up.step)
    elif scale is not None and (last := skips_at_the_floor(scale, skips)):
        claim = f"Gradients overflow even at a loss scale of {scale.finite().last:.3g}"
        yield finding(claim, CAUSE, cite_event(last[0]), cite_event(last[-1]))
    elif (end := halved_to(skips)) is not None:
        claim = f"The loss scale halves step after step, down to {end:.3g}"
        yield finding(claim, suggested(CAUSE), *ends)
    elif scale is None and len(skips) >= MANY_SKIPS and skips_to_the_end(run, skips):
        claim = f"{len(skips)} steps were skipped because of gradient overflow"
        yield finding(claim, CAUSE, cite_event(skips[0]), cite_event(skips[-1]))


def _collapsed(scale: Series, start: int, told: tuple[Evidence, ...]) -> Finding:
    before, end = float(scale.values[start]), scale.last
    says = f"{scale.origin.name} fell from {before:.4g} to {end:.4g} since {scale.when(start)}"
    cited = cite(scale, says, start, -1, before=before, end=end)
    return finding(f"The loss scale collapsed to {end:.3g}", CAUSE, cited, *told)


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
