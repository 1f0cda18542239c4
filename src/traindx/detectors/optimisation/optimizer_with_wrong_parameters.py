from typing import Any

from traindx.analysis.recordings.owners import gradient_count, is_stale, strangers_learn
from traindx.analysis.recordings.traces import (
    FOLLOWERS,
    latest_models,
    latest_optimizers,
    named,
    per_process,
    traces_of,
)
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Optimizer, Process
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

ENOUGH = 2  # samples


@detector(needs=("recording",), suggests=("parameters-not-in-optimizer",))
@per_process
def check(process: Process) -> Findings:
    """The model gets gradients, the optimizer steps, and holds none of its parameters.

    ## What it detects
    An optimizer that steps while every parameter that gets a gradient is in no optimizer and never
    changes: it was made from a model that has since been replaced, or from another model.

    ## Why it matters
    Each step updates tensors that nothing uses. The loss stays where it is, without any error.

    ## What to do
    Make the optimizer after the model, from the very model that is trained.

    ## When it is wrong
    Programs that optimise an input (style transfer, attacks, prompts) hold tensors of no model on
    purpose; those get gradients, and nothing is said. Where that is not known, and they are not as
    many as the model has parameters, this is only a remark.
    """
    optimizers = latest_optimizers(process)
    traces = [t for t in traces_of(process) if t.parameter.is_trainable]
    live = [t for t in traces if t.has_gradient and not FOLLOWERS.search(t.name)]
    is_stepped = process.counts is None or process.counts.steps > 0
    if not optimizers or not live or not is_stepped or any(t.is_owned for t in live):
        return
    if strangers_learn(process) or not all(
        t.is_known_still and gradient_count(t) >= ENOUGH for t in live
    ):
        return
    model = next(m for m in latest_models(process) if m.id == live[0].model.id)
    first, seen = optimizers[0], live[0].samples[-1]
    strangers = sum(o.strangers for o in optimizers)
    is_shown = strangers == 0 or is_stale(model, optimizers)
    known = f", {strangers} of them in no model" if strangers else ", of another model"
    holds = f"{first.type} holds {first.size} parameters{known}"
    still = f"{named(live)} of {model.type} have gradients, are in no optimizer and never changed"
    yield finding(
        f"No optimizer holds any parameter of {model.type} that gets a gradient",
        "parameters-not-in-optimizer"
        if is_shown
        else {"parameters-not-in-optimizer": Strength.MODERATE},
        cite_record(process, first.line, holds, step=first.step, strangers=strangers),
        cite_record(process, seen.line, still, step=seen.step, parameters=len(live)),
        strength=Strength.STRONG if is_shown else Strength.MODERATE,
        is_symptom=is_shown,
        place=first.place,
    )


def _run(
    size: int, strangers: int, owner: int | None = None, *, is_trainable: bool = True, **fields: Any
) -> Run:
    held = Optimizer(2, type="SGD", groups=({"lr": 0.1},), size=size, strangers=strangers)
    parameters = weights("0.weight", "2.weight", optimizer=owner, is_trainable=is_trainable)
    return recorded(watched(*parameters, optimizer=held, **fields))


FIRES = {
    "made from a model that was replaced": _run(2, 2),
    "made from another model": _run(4, 0),
    "fewer tensors than the model has: a remark": _run(1, 1),
}


_STYLE: dict[str, Any] = {
    "names": ("0.weight", "2.weight", "stranger 0"),
    "grad_norms": (0.1, 0.1, 0.3),
}

SILENT = {
    "near miss: an input is optimised": _run(1, 1, **_STYLE),
    "owned": _run(2, 0, 0),
    "near miss: an input is optimised, the model is frozen": _run(1, 1, is_trainable=False),
    "near miss: a copy in float32 is written back": _run(
        2, 2, weight_norms=lambda i: (1.0 + 0.1 * i, 1.0 + 0.1 * i)
    ),
}
