from collections.abc import Sequence
from dataclasses import replace

from traindx.analysis.recordings.observations import has_learnt
from traindx.analysis.recordings.owners import cite_idle, is_idle, is_meant_idle, starts_at_chance
from traindx.analysis.recordings.traces import (
    Trace,
    latest_models,
    latest_optimizers,
    named,
    per_process,
    traces_of,
)
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Model, Parameter, Process
from traindx.registry import Finding, Findings, Strength, cite_record, detector, finding


@detector(needs=("recording",), suggests=("parameters-not-in-optimizer",))
@per_process
def check(process: Process) -> Findings:
    """Part of a model that is trained gets gradients, is in no optimizer, and never moves.

    ## What it detects
    Trainable parameters with gradients that no optimizer holds and that never changed, among or
    above others that are trained: a head that was replaced after the optimizer was made, a block
    that was forgotten in the parameter groups.

    ## Why it matters
    They stay as they were initialised, without any error, while their gradients cost time and
    memory.

    ## What to do
    Make the optimizer after the model has its final form, or add them with `add_param_group`. What
    is to stay fixed, freeze with `requires_grad_(False)`.

    ## When it is wrong
    Training only the last layers, a small part, adapters, or one of several networks may be meant
    so; those are only remarked, unless the loss stays at that of a guess.
    """
    if not latest_optimizers(process):
        return
    traces = [t for t in traces_of(process) if t.parameter.is_trainable]
    is_trained_at_all = any(t.is_owned and t.has_gradient for t in traces)
    for model in latest_models(process):
        own = [t for t in traces if t.model.id == model.id]
        idle = [t for t in own if is_idle(t)]
        held = [t for t in own if t.is_owned and t.has_gradient]
        if idle and held:
            count = len(idle)
            of = f"{count} of {count + len(held)} parameters that get gradients"
            is_meant = is_meant_idle(idle, held)
            owner = held[0].parameter.optimizer
            is_stuck = has_learnt(process, owner) is False and starts_at_chance(process, owner)
            belief = Strength.STRONG if is_stuck or not is_meant else Strength.MODERATE
            place = next((o.place for o in latest_optimizers(process) if o.place), None)
            yield finding(
                f"No optimizer holds {of}: {named(idle)}",
                {"parameters-not-in-optimizer": belief} if is_meant else {},
                *cite_idle(process, model, idle),
                strength=belief,
                shows=None if is_meant else "parameters-not-in-optimizer",
                is_symptom=is_stuck or not is_meant,
                place=place,
            )
        elif idle and is_trained_at_all and any(t.is_matrix for t in idle) and not model.is_hidden:
            yield _of_another_network(process, model, idle)


def _of_another_network(process: Process, model: Model, idle: Sequence[Trace]) -> Finding:
    """A network nobody trains may serve a loss; if two optimizers hold another one, it does not."""
    cause, cited = "parameters-not-in-optimizer", cite_idle(process, model, idle)
    what = f"{model.type} gets gradients but is in no optimizer"
    for double in (o for o in latest_optimizers(process) if 0 < o.size == o.shared):
        says = f"another optimizer holds all {double.size} parameters of this {double.type} too"
        other = cite_record(process, double.line, says, shared=double.shared)
        claim = f"{what}, while two share another model"
        return finding(claim, cause, *cited, other, place=double.place)
    claim, weak = f"{what}; freeze it if that is intended", Strength.WEAK
    return finding(claim, {cause: weak}, *cited, strength=weak, is_symptom=False)


def _net(*held: bool) -> list[Parameter]:
    names = [f"{i}.weight" for i in range(len(held))]
    return [
        w for n, h in zip(names, held, strict=True) for w in weights(n, optimizer=0 if h else None)
    ]


def _pair(second: int | None) -> Process:
    grads = (0.1, 0.1, 0.2 if second is None else None)
    first = watched(*_net(True, True), names=("0.weight", "1.weight", "vgg"), grads=grads)
    loss_net = Model(3, id=1, type="Perceptual", parameters=tuple(weights("vgg", optimizer=second)))
    return replace(first, models=(*first.models, loss_net))


FIRES = {
    "a head that came later": recorded(watched(*_net(True, True, True, False))),
    "a block forgotten in the groups": recorded(watched(*_net(True, False, False, True))),
    "only the head, nothing frozen: a remark": recorded(watched(*_net(False, False, False, True))),
}

SILENT = {
    "all owned": recorded(watched(*_net(True, True, True))),
    "near miss: the rest is frozen": recorded(
        watched(*weights("0.weight", optimizer=None, is_trainable=False), *weights("1.weight"))
    ),
    "near miss: an average that gets no gradient": recorded(
        watched(*weights("0.weight"), *weights("copy.weight", optimizer=None), grads=(0.1, None))
    ),
    "near miss: two networks, each with its own optimizer": recorded(_pair(1)),
    "near miss: moved by hand": recorded(
        watched(*_net(True, False), weight_norms=lambda i: (1.0, 1.0 + 0.1 * i))
    ),
}
