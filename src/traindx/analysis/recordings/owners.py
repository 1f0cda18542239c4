"""Who owns the parameters of a recorded run, and what becomes of those without an owner."""

import re
from collections.abc import Sequence
from math import log, prod

from traindx.analysis.recordings.observations import medians
from traindx.analysis.recordings.traces import (
    ADAPTERS,
    FOLLOWERS,
    Trace,
    is_below,
    named,
    share,
    traces_of,
)
from traindx.model.findings import Evidence, cite_record
from traindx.model.recording import Model, Optimizer, Process

GIVEN_SAMPLES = 2  # samples with a gradient
NEAR = 0.9  # times the loss of a guess
SMALL = 0.1  # of the numbers; who trains so little of a model means to
LATER = 5  # steps by which a layer that starts at zero on purpose has left it
# buffers in the guise of parameters, parts that rest
_SPARE = re.compile(r"mask|pad|buffer|filt|window|spare|unused", re.IGNORECASE)
NARROW = 3  # numbers
MOVED = 1e-4  # of the norm per step: the training does its part


def strangers_learn(process: Process) -> bool:
    """Tell whether tensors of no model get gradients: an input or a prompt that is optimised."""
    columns = ((n, g) for s in process.samples for n, g in zip(s.names, s.grad_norms, strict=False))
    return any(n.startswith("stranger") and bool(g) for n, g in columns)


def gradient_count(trace: Trace) -> int:
    """Return in how many samples a parameter had a gradient."""
    return sum(g is not None and g > 0.0 for g in trace.grads)


def is_stale(model: Model, optimizers: Sequence[Optimizer]) -> bool:
    """Tell whether an optimizer holds as many unknown parameters as the model has."""
    trainable = sum(p.is_trainable for p in model.parameters)
    counts = {len(model.parameters), trainable} - {0, 1}
    return any(o.strangers == o.size and o.size in counts for o in optimizers)


def is_idle(trace: Trace) -> bool:
    """Tell whether a parameter gets gradients, has no owner and never changes."""
    given = sum(g is not None and g > 0.0 for g in trace.grads)
    is_left = not trace.is_owned and trace.is_known_still
    return is_left and given >= GIVEN_SAMPLES and not FOLLOWERS.search(trace.name)


def is_meant_idle(idle: Sequence[Trace], held: Sequence[Trace]) -> bool:
    """Tell whether parameters without an owner are left alone on purpose."""
    is_small = share(held, [*idle, *held]) < SMALL
    return is_below(idle, held) or is_small or any(ADAPTERS.search(t.name) for t in held)


def last_gradient(trace: Trace) -> float:
    """Return the last gradient that is not zero; 0 if there is none."""
    return next((g for g in reversed(trace.grads) if g), 0.0)


def starts_at_chance(process: Process, optimizer: int | None) -> bool:
    """Tell whether the first cross-entropy is that of a guess: nothing was trained before."""
    for sample in process.samples:
        if sample.optimizer == optimizer and len(sample.losses) == 1:
            classes = sample.losses[0].classes
            return classes > 1 and sample.loss >= NEAR * log(classes)
    return False


def is_stuck_at_zero(trace: Trace) -> bool:
    """Tell whether a weight matrix is zero, gets no gradient and is not meant to rest."""
    is_late = trace.samples[-1].step >= LATER
    is_zero = all(n == 0.0 for n in trace.norms) and min(trace.parameter.shape) > 1
    is_named = ADAPTERS.search(trace.name) or _SPARE.search(trace.name)
    return is_late and is_zero and all(g == 0.0 for g in trace.grads) and not is_named


def has_wide_input(trace: Trace, traces: Sequence[Trace]) -> bool:
    """Tell whether the model takes more than those few numbers, and narrows them on the way."""
    below = [t for t in traces if t.model.id == trace.model.id and t.index < trace.index]
    return any(t.is_matrix and prod(t.parameter.shape[1:]) > NARROW for t in below)


def keeps_moving(trace: Trace) -> bool:
    """Tell whether steps move a weight that is no embedding."""
    own = trace.of_owner()
    is_table = "emb" in trace.name.lower()
    return not is_table and medians(r for r in own.ratios if r is not None) > MOVED


def are_all_seen_still(process: Process) -> bool:
    """Tell whether every weight of every step that was looked at stayed what it was."""
    traces = traces_of(process)
    seen = [r for t in traces for r in t.ratios if r is not None]
    return bool(seen) and not any(seen) and all(t.is_known_still for t in traces)


def still_moves(trace: Trace) -> bool:
    """Tell whether it moved in the last steps too: a rate may have fallen to zero since."""
    known = [moved for moved in trace.moves if moved is not None]
    return bool(known) and known[-1]


def cite_idle(process: Process, model: Model, idle: Sequence[Trace]) -> tuple[Evidence, ...]:
    """Cite parameters that no optimizer holds, and the gradient of one that never changed."""
    seen = idle[0].samples[-1]
    says = f"no optimizer holds {named(idle)} of {model.type}"
    still = f"{idle[0].name} has a gradient of {last_gradient(idle[0]):.3g} and never changed"
    return (
        cite_record(process, model.line, says, step=model.step, parameters=len(idle)),
        cite_record(process, seen.line, still, step=seen.step, gradient=last_gradient(idle[0])),
    )


def moves_weights(process: Process, optimizer: Optimizer) -> bool:
    """Tell whether a weight of an optimizer ever moved."""
    own = (t for t in traces_of(process) if t.parameter.optimizer == optimizer.id)
    return any(t.has_moved for t in own)
