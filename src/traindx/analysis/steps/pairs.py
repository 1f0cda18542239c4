"""Whether the labels of a step still belong to its inputs."""

from __future__ import annotations

from dataclasses import dataclass

from traindx.analysis.steps.step_graph import Act, Step, TensorNode

PICKS = ("index", "index_select", "gather", "take")


@dataclass(frozen=True)
class Shuffle:
    """An operation that puts examples into another order."""

    act: Act
    of: TensorNode


def lone_shuffle(step: Step) -> Shuffle | None:
    """Return the shuffle that only labels, or only inputs, went through on their way to the loss.

    Where the same tensor also takes part in its own order, as in mixup, nothing is out of step; nor
    where what became of it is put back, as a recurrent network does that sorts by length.
    """
    labels = _shuffles(step, step.labels)
    inputs = _shuffles(step, step.inputs)
    if bool(labels) == bool(inputs):
        return None
    found = (labels or inputs)[0]
    others = [a for a in found.of.users if a is not found.act and _reaches_loss(step, a)]
    return None if others or _is_put_back(step, found.act) else found


def _shuffles(step: Step, nodes: tuple[TensorNode, ...]) -> list[Shuffle]:
    found = []
    for node in nodes:
        for act in node.users:
            is_pick = act.name in PICKS and act.inputs[0] is node and len(act.inputs) > 1
            if is_pick and _is_order(act.inputs[1], node) and _reaches_loss(step, act):
                found.append(Shuffle(act, node))
    return found


def _is_put_back(step: Step, shuffle: Act) -> bool:
    """Tell whether something that was computed from a shuffle goes through an order again."""
    later = (a for a in step.named(*PICKS) if a is not shuffle and len(a.inputs) > 1)
    return any(
        a.inputs[1].facts.is_permutation
        and a.inputs[1].shape == shuffle.inputs[1].shape
        and any(a.inputs[0].depends_on(n) for n in shuffle.outputs)
        for a in later
    )


def _is_order(index: TensorNode, of: TensorNode) -> bool:
    """Tell whether an index names every example once, in another order than they have."""
    facts = index.facts
    return facts.is_permutation and not facts.is_sorted and index.shape[:1] == of.shape[:1]


def _reaches_loss(step: Step, act: Act) -> bool:
    return any(n in step.learning for n in act.outputs)
