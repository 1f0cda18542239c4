"""What the functions of a loss are given, in whatever form they are written."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.steps.step_graph import Act, Step

CLASSES = 2  # at least: over a single one everything adds up to one


def softmax_of_probabilities(step: Step) -> Iterator[Act]:
    """Yield each log-softmax on the way to the loss whose input adds up to one over its classes."""
    for act in step.named("log_softmax"):
        given = act.inputs[0] if act.inputs else None
        if given is None or given not in step.parametric or act.outputs[0] not in step.learning:
            continue
        is_spread = given.facts.low < given.facts.high
        sizes = [given.shape[d] for d in act.dims]
        if is_spread and set(act.dims) & set(given.facts.ones) and min(sizes) >= CLASSES:
            yield act
