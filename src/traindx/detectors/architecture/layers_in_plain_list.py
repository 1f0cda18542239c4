from dataclasses import replace

from traindx.analysis.recordings.traces import latest_models, per_process, traces_of
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Model, Process
from traindx.registry import Findings, Run, cite_record, detector, finding

ENOUGH = 2  # samples with a gradient
CAUSE = "unregistered-submodules"


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """Layers get gradients, belong to no model that has a name, and are in no optimizer.

    ## What it detects
    Modules that the graph of the loss leads to, that are part of no other module and that no
    variable of the program holds directly, with trainable parameters that get gradients, are in no
    optimizer and never change: layers in a plain list or dictionary of a module.

    ## Why it matters
    `parameters()`, `to()`, `train()` and `state_dict()` do not see them: they are not trained, not
    moved and not saved.

    ## What to do
    `nn.ModuleList` or `nn.ModuleDict` in place of the plain list or dictionary.

    ## When it is wrong
    Layers that are fixed at random on purpose look the same; `requires_grad_(False)` says so.
    """
    traces = traces_of(process)
    hidden: list[Model] = []
    for model in latest_models(process):
        own = [t for t in traces if t.model.id == model.id and t.parameter.is_trainable]
        is_left = own and not any(t.is_owned or t.has_moved for t in own)
        given = [t for t in own if sum(bool(g) for g in t.grads) >= ENOUGH]
        if model.is_hidden and is_left and given:
            hidden.append(model)
    if not hidden or not any(t.is_owned and t.has_gradient for t in traces):
        return
    kinds = ", ".join(dict.fromkeys(m.type for m in hidden))
    many = f"{len(hidden)} layers ({kinds}) are" if len(hidden) > 1 else f"A layer ({kinds}) is"
    says = f"{kinds} is in no module and in no optimizer, but the loss depends on it"
    place = next((s.place for s in process.samples if s.place), None)
    claim = f"{many} used in the loss but not registered in the model, so never trained"
    cited = cite_record(process, hidden[0].line, says, layers=len(hidden))
    yield finding(claim, CAUSE, cited, onset=0.0, place=place)


def _process(
    *, is_hidden: bool = True, optimizer: int | None = None, grad: float | None = 0.1
) -> Run:
    stem, inner = weights("stem.weight"), weights("weight", optimizer=optimizer)
    both = watched(*stem, *inner, grads=(0.1, grad), still=("weight",) if optimizer is None else ())
    net = replace(both.models[0], parameters=tuple(stem))
    layer = Model(7, id=1, type="Linear", parameters=tuple(inner), is_hidden=is_hidden)
    return recorded(replace(both, models=(net, layer)))


FIRES = {"in a plain list": _process()}

SILENT = {
    "near miss: a network with a name, such as one for a perceptual loss": _process(
        is_hidden=False
    ),
    "near miss: in the optimizer by hand": _process(optimizer=0),
    "without a gradient": _process(grad=None),
}
