"""Which tensors a loss treats as probabilities, in whatever form it is written."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.steps.step_graph import Act, Step, TensorNode

ROUNDING = 1e-3
BOUNDED = frozenset({"sigmoid", "softmax", "clamp", "relu", "hardsigmoid", "hardtanh", "exp"})


def complements_of_scores(step: Step) -> Iterator[Act]:
    """Yield each `1 - p` of an unbounded output p that the loss weighs with labels of 0 and 1.

    The same output stands in the loss beside its complement: `p * y` and `(1 - p) * (1 - y)`, or
    `p * y` and `(1 - p) * y`. A hinge has `1 - y * p`, whose p has met the labels already.
    """
    for act in step.acts:
        score = act.inputs[0] if _is_complement(act) else None
        if score is None or act.outputs[0] not in step.learning or not _is_score(step, score):
            continue
        if _meets_labels(step, act.outputs[0]) and _meets_labels(step, score):
            yield act


def _is_complement(act: Act) -> bool:
    """Tell whether it is 1 minus a tensor."""
    if act.name == "rsub":
        one = act.setting("other")
        return len(act.inputs) == 1 and one in (1, 1.0) and act.setting("alpha") in (None, 1)
    return False


def _is_score(step: Step, node: TensorNode) -> bool:
    """Tell whether it is an output of the model without bounds, that has met no label."""
    facts = node.facts
    is_outside = facts.low < -ROUNDING or facts.high > 1 + ROUNDING
    maker = node.origin.maker
    is_bounded = maker is not None and maker.name in BOUNDED
    is_free = not any(label in node.ancestors for label in step.labels)
    return node in step.parametric and is_outside and not is_bounded and is_free


def _meets_labels(step: Step, node: TensorNode) -> bool:
    """Tell whether it is multiplied with what was computed from 0/1 labels alone."""
    for act in node.users:
        others = [n for n in act.inputs if n is not node]
        if act.name == "mul" and any(_is_binary(step, n) for n in others):
            return True
    return False


def _is_binary(step: Step, node: TensorNode) -> bool:
    facts = node.facts
    is_unit = facts.is_whole and facts.low >= 0 and facts.high <= 1
    return is_unit and node not in step.parametric and any(n in node.ancestors for n in step.labels)
