"""Which token a language model is to name at a position: the next one, or a later one."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.steps.step_graph import Act, Step

NEXT = 1


def far_targets(step: Step) -> Iterator[Act]:
    """Yield each loss whose targets lie more than one position ahead of the tokens.

    Outputs that are cut at their front have moved with the targets. A head that names a later
    token stands beside one that names the next.
    """
    losses = [a for a in step.acts if a.record.ahead is not None and _is_learnt(step, a)]
    if any((a.record.ahead or 0) <= NEXT for a in losses) or _cuts_front(step):
        return
    yield from losses


def _is_learnt(step: Step, act: Act) -> bool:
    return any(n in step.learning for n in act.outputs)


def _cuts_front(step: Step) -> bool:
    """Tell whether an output of the model loses its first positions."""
    for act in step.named("slice", "narrow", "index", "index_select"):
        start = act.setting("start")
        is_cut = not isinstance(start, int) or start > 0
        if is_cut and act.inputs[0] in step.parametric and not act.inputs[0].origin.is_parameter:
            return True
    return False
