"""Where tensors of different shapes meet, and every value is set against every other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.steps.step_graph import Act, Step, TensorNode
from traindx.model.recording import Shape

PAIRWISE = frozenset(
    {"sub", "rsub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "mul", "div", "eq", "ne",
     "binary_cross_entropy", "binary_cross_entropy_with_logits", "squared_difference", "where",
     "gt", "lt", "ge", "le", "add", "soft_margin_loss", "kl_div"}
)  # fmt: skip


@dataclass(frozen=True)
class Crossed:
    """An operation of a column and a row: N values against N values give N × N."""

    act: Act
    column: TensorNode
    row: TensorNode

    @property
    def result(self) -> Shape:
        return self.act.outputs[0].shape if self.act.outputs else ()


def crossed(step: Step) -> Iterator[Crossed]:
    """Yield the operations in which (N, 1) meets (N) and both have one value for each example."""
    for act in step.named(*PAIRWISE):
        tensors = [n for n in act.inputs if n.shape]
        for one in tensors:
            for other in tensors:
                if _is_column_and_row(one.shape, other.shape):
                    yield Crossed(act, one, other)


def _is_column_and_row(one: Shape, other: Shape) -> bool:
    return len(one) == 2 and len(other) == 1 and one[1] == 1 and one[0] == other[0] > 1


def crossed_in_loss(step: Step) -> Iterator[Crossed]:
    """Yield where an output of the model and a label of the batch are set against each other so."""
    for met in crossed(step):
        sides = (met.column, met.row)
        learnt = [n for n in sides if n in step.parametric]
        labels = [n for n in sides if n not in step.parametric and _is_of_batch(n)]
        if len(learnt) == 1 and labels and met.act.outputs[0] in step.learning:
            yield met


def _is_of_batch(node: TensorNode) -> bool:
    return any(n.is_batch for n in node.ancestors)
