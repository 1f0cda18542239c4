"""The settings of recorded optimizers: rates, momentum and decay."""

from collections.abc import Sequence

from traindx.analysis.curves import curve
from traindx.analysis.recordings.traces import Trace, latest_models, latest_optimizers
from traindx.model.recording import Optimizer, Process
from traindx.model.run import Floats, as_number

HALVED = 0.5  # of the norm at the start
HEAVY_DECAY = 0.05  # coupled decay; recipes end at a tenth of it
RULING = 0.5  # the penalty over what is left of the loss
DECOUPLED = ("adamw", "lion", "lamb")
NORMS = ("norm",)  # their scale undoes that of the weights below
HEAVY_MOMENTUM = 0.97  # of the step before; recipes take 0.9, some 0.95, few 0.99 at a small rate
EFFECTIVE_RATE = 0.5  # the rate over one minus momentum, which is what a steady gradient moves by


def learning_rates(optimizer: Optimizer) -> list[float]:
    """Return the learning rates of the groups of an optimizer."""
    given = (g.get("lr") for g in optimizer.groups)
    return [float(r) for r in given if isinstance(r, (int, float))]


def heaviest_decay(process: Process) -> tuple[Optimizer, float] | None:
    """The optimizer with the largest decay in any of its groups."""
    groups = [(o, g.get("weight_decay")) for o in latest_optimizers(process) for g in o.groups]
    found = [(o, as_number(decay) or 0.0) for o, decay in groups]
    return max(found, key=lambda pair: pair[1], default=None)


def is_ruled_by_decay(
    process: Process, optimizer: Optimizer, amount: float, left: float,
    known: Sequence[Trace], values: Floats,
) -> bool:  # fmt: skip
    """Tell whether the penalty is a good part of what a coupled optimizer minimises."""
    is_coupled = not any(word in optimizer.type.lower() for word in DECOUPLED)
    has_norm = any(w in m.type.lower() for model in process.models for m in model.modules
                   for w in NORMS)  # fmt: skip
    if not is_coupled or has_norm or amount < HEAVY_DECAY or left > HALVED:
        return False
    penalty = 0.5 * amount * sum(t.norms[-1] ** 2 for t in known)
    return penalty > RULING * abs(curve(values).end_value)


def heavy_momentum(process: Process) -> tuple[Optimizer, float, float] | None:
    """The optimizer of plain descent whose momentum is heavy for its rate."""
    for optimizer in latest_optimizers(process):
        for group in optimizer.groups:
            momentum, rate = as_number(group.get("momentum")), as_number(group.get("lr"))
            if optimizer.type != "SGD" or momentum is None or rate is None:
                continue
            is_damped = (as_number(group.get("dampening")) or 0.0) > 0.0
            if (
                HEAVY_MOMENTUM <= momentum < 1.0
                and rate / (1.0 - momentum) >= EFFECTIVE_RATE
                and not is_damped
            ):
                return optimizer, momentum, rate
    return None


def decays_weights(optimizer: Optimizer) -> bool:
    """Tell whether an optimizer shrinks weights whatever their gradients are."""
    return any(bool(g.get("weight_decay")) for g in optimizer.groups)


def holds_copies(process: Process, optimizer: int) -> bool:
    """Tell whether an optimizer holds nothing but copies of a model's parameters, one for each.

    Whoever trains in half precision so hands the gradients over before every step.
    """
    own = next((o for o in latest_optimizers(process) if o.id == optimizer), None)
    if own is None or not own.size or own.strangers != own.size:
        return False
    free = [p for m in latest_models(process) for p in m.parameters if p.is_trainable]
    return len(free) == own.size and all(p.optimizer is None for p in free)
