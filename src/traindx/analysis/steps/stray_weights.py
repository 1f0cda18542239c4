"""Weights that a loss can teach and that nobody holds."""

from __future__ import annotations

from traindx.analysis.steps.gradient_cuts import taught
from traindx.analysis.steps.step_graph import Act, Step, TensorNode

MIXING = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "convolution", "linear", "embedding", "mul", "add", "sub",
     "div", "cat", "expand", "index", "stack", "dot", "mv", "where"}
)  # fmt: skip


def stray_weights(step: Step) -> list[TensorNode]:
    """Return the tensors that get a gradient from a loss and belong to no model.

    What the loader gave, or what is differentiated by its inputs, is computed in the step or part
    of the batch. A tensor without a shape is a number that somebody watches.
    """
    live = taught(step)
    return [n for n in step.nodes if n in live and _is_held_by_nobody(n) and first_use(n)]


def _is_held_by_nobody(node: TensorNode) -> bool:
    facts = node.facts
    return facts.needs_grad and node.maker is None and not facts.role and bool(node.shape)


def first_use(node: TensorNode) -> Act | None:
    """Return where a tensor first meets others; None where it does not."""
    users = list(node.users)
    for act in users:
        if act.name in MIXING:
            return act
        users += [a for n in act.outputs for a in n.users if len(users) < 50]
    return None
