"""The shapes that the losses of torch take, and what they make of them."""

from __future__ import annotations

from traindx.analysis.program.shapes.sizes import is_surely_different
from traindx.analysis.program.shapes.values import Mismatch, Shape, ShapedTensor

INDEXED = frozenset({"cross_entropy", "nll_loss"})
ALIKE = frozenset({"binary_cross_entropy", "binary_cross_entropy_with_logits"})
BROADCAST = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})


def check_loss(name: str, output: Shape, target: Shape) -> None:
    """Raise `Mismatch` where a loss cannot compare an output with a target."""
    if output.is_open or target.is_open or not output.sizes:
        return
    if name in INDEXED:
        _check_indexed(name, output, target)
    elif name in ALIKE and len(output.sizes) == len(target.sizes):
        _check_sizes(name, output, target, 0)


def _check_indexed(name: str, output: Shape, target: Shape) -> None:
    """Classes are the second dimension of the output; the target has the others."""
    rank = len(output.sizes)
    if len(target.sizes) == rank:
        if rank == 2 and target.sizes[1] == 1 and output.sizes[1] != 1:
            raise _unfit(name, output, target, "a class index per row is one-dimensional")
        return  # a share for each class
    if rank < 2 or len(target.sizes) != rank - 1:
        if rank >= 2:
            raise _unfit(name, output, target, "the target has one dimension less than the output")
        return
    rest = Shape((output.sizes[0], *output.sizes[2:]))
    for at, (wanted, got) in enumerate(zip(rest.sizes, target.sizes, strict=True)):
        if is_surely_different(wanted, got):
            text = f"classes are dimension 1 of the output, and {wanted} and {got} meet in {at}"
            raise _unfit(name, output, target, text)


def _check_sizes(name: str, output: Shape, target: Shape, start: int) -> None:
    for wanted, got in zip(output.sizes[start:], target.sizes[start:], strict=True):
        if is_surely_different(wanted, got):
            raise _unfit(name, output, target, f"{wanted} and {got} meet")


def _unfit(name: str, output: Shape, target: Shape, why: str) -> Mismatch:
    text = f"{name} cannot compare an output {output} with a target {target}: {why}"
    return Mismatch("loss", output, target, text)


def scalar(reduction: object) -> ShapedTensor:
    """Return what a loss is: one number, unless it is not reduced."""
    return ShapedTensor() if reduction == "none" else ShapedTensor(Shape(()))
