"""Targets that are padding and count in a loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.steps.step_graph import Act, Step, TensorNode

MEAN_OR_SUM = (1, 2)  # reductions; without one a mask may follow


@dataclass(frozen=True)
class PaddingTargets:
    """A loss over the tokens of a vocabulary whose padding it does not ignore."""

    act: Act
    table: TensorNode
    token: int


def counted_padding(step: Step) -> Iterator[PaddingTargets]:
    """Yield each loss over as many classes as a table has rows, that counts the table's padding.

    The table says which token pads: its own rows for it are not trained.
    """
    tables = [
        (act.inputs[0], token)
        for act in step.named("embedding")
        if isinstance(token := act.setting("padding_idx"), int) and token >= 0 and act.inputs
    ]
    for act in step.named("nll_loss", "nll_loss2d"):
        if act.setting("reduction") not in MEAN_OR_SUM or not _is_learnt(step, act):
            continue
        ignored = act.setting("ignore_index")
        logits = act.inputs[0].shape
        for table, token in tables:
            is_same = len(logits) > 1 and table.shape[:1] == logits[1:2]
            if is_same and ignored != token:
                yield PaddingTargets(act, table, token)
                break


def _is_learnt(step: Step, act: Act) -> bool:
    return any(n in step.learning for n in act.outputs)
