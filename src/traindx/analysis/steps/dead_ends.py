"""Results that are computed from parameters and lead to no loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from traindx.analysis.steps.step_graph import Act, Step, TensorNode


@dataclass(frozen=True)
class DeadEnd:
    """The last result of some parameters: nothing that is trained depends on it."""

    act: Act
    parameters: frozenset[str]


def idle_parameters(steps: Iterable[Step]) -> frozenset[str]:
    """Return the trainable parameters that take part in steps, and in no loss of any of them."""
    used: set[str] = set()
    taught: set[str] = set()
    for step in steps:
        if step.losses and not step.captured.why:
            names = {n.label: n for n in step.nodes if n.is_parameter and n.users}
            used |= {name for name, n in names.items() if n.facts.needs_grad}
            taught |= {name for name, n in names.items() if n in step.learning}
    return frozenset(used - taught)


def dead_ends(step: Step, names: frozenset[str]) -> list[DeadEnd]:
    """Return where the results of some parameters end, the one with most of them first."""
    found: dict[Act, set[str]] = {}
    for node in step.nodes:
        if node.is_parameter and node.label in names:
            act = _last(node)
            if act is not None:
                found.setdefault(act, set()).add(node.label)
    ends = [DeadEnd(act, frozenset(labels)) for act, labels in found.items()]
    return sorted(ends, key=lambda e: -len(e.parameters))


def _last(node: TensorNode) -> Act | None:
    """Return the last operation that something was used for."""
    waiting, seen = list(node.users), set(node.users)
    while waiting:
        for output in waiting.pop().outputs:
            fresh = [a for a in output.users if a not in seen]
            seen.update(fresh)
            waiting += fresh
    return max((a for a in seen if a.name != "detach"), key=lambda a: a.number, default=None)
