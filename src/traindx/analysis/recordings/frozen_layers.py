"""Parameters of a recorded model that are frozen where others are trained."""

import re
from collections.abc import Iterator

from traindx.analysis.recordings.observations import last_step
from traindx.analysis.recordings.traces import (
    ADAPTERS,
    FOLLOWERS,
    Trace,
    latest_models,
    latest_optimizers,
    share,
    traces_of,
)
from traindx.model.recording import Model, Parameter, Process
from traindx.model.run import Run

MOST = 0.5  # of the parameters; who freezes more than this means to
_HEAD = re.compile(
    r"(?:^|\.)(?:head|classifier|fc|cls|score|logits|out|output|output_layer|fc_out)(?:\.|$)", re.I
)
OWN_SAMPLES = 3  # samples of the owner
STEPS = 100
LAYERS = re.compile(r"^(?:Linear|LazyLinear|Bilinear|Conv\w*|LSTM|GRU|RNN|MultiheadAttention)$")
A_PART = 0.2  # of the numbers of the model's weights; less is a detail
NEARLY_ALL = 0.8  # of them: what is left cannot make up for it


def lone_trained_bias(model: Model) -> Parameter | None:
    """Return the one bias that is trained: to tune all biases is a method, to tune one is not."""
    trained = [p for p in model.parameters if p.is_trainable]
    matrices = [p for p in model.parameters if len(p.shape) >= 2]
    is_odd = len(trained) == 1 and len(trained[0].shape) == 1 and len(matrices) > 1
    return trained[0] if is_odd and trained[0].name.endswith("bias") else None


def frozen_head(model: Model) -> Parameter | None:
    """The last weight matrix, where it is named as an output and most of the rest is trained."""
    matrices = [p for p in model.parameters if len(p.shape) >= 2]
    if len(matrices) < 2 or any(ADAPTERS.search(p.name) for p in model.parameters):
        return None
    head, others = matrices[-1], matrices[:-1]
    trained = [p for p in others if p.is_trainable and p.optimizer is not None]
    is_odd = not head.is_trainable and len(trained) > MOST * len(others)
    return head if is_odd and _HEAD.search(head.name) else None


def loads_only_late(run: Run) -> bool:
    """Tell whether weights were seen to be loaded, and never before much had been trained."""
    processes = run.recording.processes if run.recording is not None else ()
    return all(p.loads and all(r.step >= STEPS for r in p.loads) for p in processes)


def is_kept_frozen(process: Process, model: Model, trace: Trace, beside: int | None = None) -> bool:
    """Tell whether a weight of an ordinary layer never was to be trained.

    It is in an optimizer, or else beside what the given one holds; there embeddings count too.
    """
    told = [p for m in process.models if m.id == model.id for p in m.parameters]
    is_off = not any(p.is_trainable for p in told if p.name == trace.name)
    layer = trace.name.rpartition(".")[0]
    kinds = [m.type for m in model.modules if m.name == layer]
    is_layer = beside is not None or any(LAYERS.search(kind) for kind in kinds)
    seen = trace.samples if beside is not None else trace.of_owner().samples
    is_still = not trace.has_moved and not trace.is_reached
    is_own = trace.is_owned is (beside is None) and not FOLLOWERS.search(trace.name)
    return is_off and is_layer and len(seen) >= OWN_SAMPLES and is_still and is_own


def never_thawed(process: Process) -> Iterator[tuple[Model, Model]]:
    """Yield whole models that stay frozen in an optimizer whose other models are switched on again.

    A GAN freezes its discriminators for the generator's step: one that is told as frozen and gets
    gradients from other steps was switched on for these.
    """
    traces = traces_of(process)
    known = latest_models(process)
    for model in known:
        own = [t for t in traces if t.model.id == model.id]
        if not own or len({t.parameter.optimizer for t in own}) != 1 or not own[0].is_owned:
            continue
        seen = own[0].of_owner()
        is_off = not any(t.parameter.is_trainable or t.of_owner().is_reached for t in own)
        if not is_off or len(seen.samples) < OWN_SAMPLES:
            continue
        for other in known:
            beside = [t for t in traces if t.model.id == other.id]
            shared = {t.parameter.optimizer for t in beside} == {own[0].parameter.optimizer}
            if other.id != model.id and shared and any(map(_is_switched, beside)):
                yield model, other
                break


def _is_switched(trace: Trace) -> bool:
    return not trace.parameter.is_trainable and trace.of_owner().has_gradient


def frozen_at_random(
    process: Process, *, is_written: bool
) -> Iterator[tuple[Model, list[Trace], list[Trace], int | None]]:
    """Yield models with much of them frozen from the start: what is frozen, of what, beside whom.

    What no optimizer holds counts where the program is known to freeze it and hardly any is left.
    """
    if last_step(process) < STEPS or any(o.strangers for o in latest_optimizers(process)):
        return
    traces = traces_of(process)
    for model in latest_models(process):
        every = [t for t in traces if t.model.id == model.id]
        own = [t for t in every if t.is_matrix]
        trained = [t for t in every if t.parameter.is_trainable and t.has_moved]
        if not trained or any(ADAPTERS.search(p.name) for p in model.parameters):
            continue
        frozen = [t for t in own if is_kept_frozen(process, model, t)]
        if frozen and share(frozen, own) >= A_PART:
            yield model, frozen, own, frozen[0].parameter.optimizer
            continue
        owner = trained[0].parameter.optimizer
        frozen = [t for t in own if is_kept_frozen(process, model, t, owner)]
        if is_written and share(frozen, own) >= NEARLY_ALL:
            yield model, frozen, own, owner
