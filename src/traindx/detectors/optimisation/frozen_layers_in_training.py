from dataclasses import replace

from traindx.analysis.recordings.frozen_layers import (
    frozen_head,
    lone_trained_bias,
    never_thawed,
)
from traindx.analysis.recordings.traces import latest_models, latest_optimizers, per_process
from traindx.examples import recorded, watched, weights
from traindx.model.findings import Evidence
from traindx.model.recording import Counts, Model, Process, Sample
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding, suggested

CAUSE = "frozen-parameters"
ENOUGH = 5  # steps


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """Steps are taken and every parameter is frozen, or the output layer of a model that trains is.

    ## What it detects
    An optimizer that steps while all parameters it holds, and all others, have `requires_grad` off,
    or all but the bias of one layer. One of several models of an optimizer that is frozen at every
    step, beside one that is switched off and on again. As a remark: an output layer that is frozen
    while most of the layers below it are trained.

    ## Why it matters
    Frozen parameters get no gradient and do not change. A new head that is frozen by a loop over
    all parameters keeps its random weights.

    ## What to do
    Freeze only what is pretrained, before the new head is added, or switch the head on again.

    ## When it is wrong
    A fixed backbone below a head that trains, adapters, fixed embeddings and fixed teachers are
    usual, and left alone. A fixed output layer may be meant, so it is only remarked.
    """
    steps = process.counts.steps if process.counts is not None else len(process.samples)
    models = [m for m in latest_models(process) if m.parameters]
    if steps < ENOUGH or not models or any(o.strangers for o in latest_optimizers(process)):
        return
    held = [m for m in models for p in m.parameters if p.optimizer is not None]
    place = next((o.place for o in latest_optimizers(process) if o.place), None)
    if held and not any(p.is_trainable for m in models for p in m.parameters):
        whole = f"all {len(held[0].parameters)} parameters of {held[0].type}"
        cited = _off(process, held[0], whole, held=len(held))
        claim = f"Every parameter is frozen while the optimizer takes {steps} steps"
        yield finding(claim, CAUSE, cited, place=place)
        return
    for model, other in never_thawed(process):
        cited = _off(process, model, f"all {len(model.parameters)} parameters of {model.type}")
        claim = f"{model.type} stays frozen; only {other.type} is switched on again for its steps"
        yield finding(claim, CAUSE, cited, place=place)
        return
    for model in models:
        bias, head = lone_trained_bias(model), frozen_head(model)
        if bias is not None:
            cited = _off(process, model, f"all {len(model.parameters)} parameters but {bias.name}")
            claim = f"Only {bias.name} is trained; all weights of {model.type} are frozen"
            yield finding(claim, CAUSE, cited, place=place)
        elif head is not None:
            cited = _off(process, model, f"{head.name}, the last weights of {model.type}")
            yield finding(
                f"The output layer {head.name} is frozen while the layers below it are trained",
                suggested(moderate=CAUSE),
                cited,
                strength=Strength.MODERATE,
                is_symptom=False,
            )


def _off(process: Process, model: Model, what: str, **values: float) -> Evidence:
    says = f"requires_grad is off for {what}"
    return cite_record(process, model.line, says, step=model.step, **values)


def _run(*trainable: bool, prefix: str = "net", steps: int = 50) -> Run:
    names = [f"{prefix}.{i}.weight" for i in range(len(trainable) - 1)] + ["head.weight"]
    parameters = [
        w for n, t in zip(names, trainable, strict=True) for w in weights(n, is_trainable=t)
    ]
    return recorded(replace(watched(*parameters), counts=Counts(99, steps=steps, backwards=steps)))


def _pair(*reached: float | None, trainable: bool = False) -> Run:
    """Return a GAN whose optimizer holds two discriminators with a weight each."""
    generator = Model(1, 0, "Generator", 0, tuple(weights("fc.weight", optimizer=0)))
    critics = [
        Model(2 + i, 1 + i, name, 0, tuple(weights("fc.weight", optimizer=1, is_trainable=on)))
        for i, (name, on) in enumerate((("GlobalD", False), ("PatchD", trainable)))
    ]
    samples = tuple(
        Sample(
            9 + i, i, 1, names=("fc.weight", "fc.weight"), grad_norms=reached,
            weight_norms=(1.0 + i, 1.0), has_moved=(True, reached[1] is not None),
        )
        for i in range(5)
    )  # fmt: skip
    counts = Counts(99, steps=50, backwards=50)
    return recorded(Process(models=(generator, *critics), samples=samples, counts=counts))


FIRES = {
    "all of it": _run(False, False, False),
    "one of two discriminators": _pair(0.3, None),
    "the head alone: a remark": _run(True, True, True, False),
}

SILENT = {
    "near miss: both are switched on again": _pair(0.3, 0.2),
    "near miss: a frozen network beside one that is never switched": _pair(None, None),
    "nothing": _run(True, True, True),
    "near miss: a fixed backbone": _run(False, False, False, True),
    "near miss: fixed embeddings": _run(False, True, True, True),
    "near miss: adapters": _run(True, True, False, prefix="lora_A"),
    "near miss: a network that is only looked at": recorded(
        watched(*weights("0.weight", "1.weight", optimizer=None, is_trainable=False))
    ),
}
