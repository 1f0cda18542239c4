from collections.abc import Sequence
from dataclasses import replace

from traindx.analysis.recordings.frozen_layers import frozen_head, lone_trained_bias
from traindx.analysis.recordings.traces import latest_models, latest_optimizers, per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Counts, Model, Parameter, Process
from traindx.registry import Finding, Findings, Strength, cite_record, detector, finding

ENOUGH = 5  # steps


@detector(needs=("recording",), suggests=("frozen-parameters",))
@per_process
def check(process: Process) -> Findings:
    """Steps are taken and every parameter is frozen, or the output layer of a model that trains is.

    ## What it detects
    An optimizer that steps while all parameters it holds, and all others, have `requires_grad` off,
    or all but the bias of one layer. As a remark: an output layer that is frozen while most of the
    layers below it are trained.

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
    held = [p for m in models for p in m.parameters if p.optimizer is not None]
    if held and not any(p.is_trainable for m in models for p in m.parameters):
        yield _all_frozen(process, models, held, steps)
        return
    for model in models:
        lone = lone_trained_bias(model)
        if lone is not None:
            yield _only_a_bias(process, model, lone)
            continue
        head = frozen_head(model)
        if head is not None:
            yield _head_frozen(process, model, head)


def _all_frozen(
    process: Process, models: Sequence[Model], held: Sequence[Parameter], steps: int
) -> Finding:
    model = next(m for m in models if any(p.optimizer is not None for p in m.parameters))
    place = next((o.place for o in latest_optimizers(process) if o.place), None)
    says = f"requires_grad is off for all {len(model.parameters)} parameters of {model.type}"
    return finding(
        f"Every parameter is frozen while the optimizer takes {steps} steps",
        "frozen-parameters",
        cite_record(process, model.line, says, step=model.step, held=len(held)),
        place=place,
    )


def _only_a_bias(process: Process, model: Model, bias: Parameter) -> Finding:
    says = f"requires_grad is off for all {len(model.parameters)} parameters but {bias.name}"
    place = next((o.place for o in latest_optimizers(process) if o.place), None)
    return finding(
        f"Only {bias.name} is trained; all weights of {model.type} are frozen",
        "frozen-parameters",
        cite_record(process, model.line, says, step=model.step),
        place=place,
    )


def _head_frozen(process: Process, model: Model, head: Parameter) -> Finding:
    says = f"requires_grad is off for {head.name}, the last weights of {model.type}"
    return finding(
        f"The output layer {head.name} is frozen while the layers below it are trained",
        {"frozen-parameters": Strength.MODERATE},
        cite_record(process, model.line, says, step=model.step),
        strength=Strength.MODERATE,
        is_symptom=False,
    )


def _process(*trainable: bool, prefix: str = "net", steps: int = 50) -> Process:
    names = [f"{prefix}.{i}.weight" for i in range(len(trainable) - 1)] + ["head.weight"]
    parameters = [
        w for n, t in zip(names, trainable, strict=True) for w in weights(n, is_trainable=t)
    ]
    return replace(watched(*parameters), counts=Counts(99, steps=steps, backwards=steps))


FIRES = {
    "all of it": recorded(_process(False, False, False)),
    "the head alone: a remark": recorded(_process(True, True, True, False)),
}

SILENT = {
    "nothing": recorded(_process(True, True, True)),
    "near miss: a fixed backbone": recorded(_process(False, False, False, True)),
    "near miss: fixed embeddings": recorded(_process(False, True, True, True)),
    "near miss: adapters": recorded(_process(True, True, False, prefix="lora_A")),
    "near miss: a network that is only looked at": recorded(
        watched(*weights("0.weight", "1.weight", optimizer=None, is_trainable=False))
    ),
}
