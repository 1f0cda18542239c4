"""Tensors of one number: what a mean or a loss is, and what is computed from such."""

from __future__ import annotations

from traindx.analysis.program.execution.values import Known, Result, Value, constant

REDUCES = frozenset({"mean", "sum", "prod", "max", "min", "norm", "std", "var", "median"})
ARITHMETIC = frozenset(
    f"operator.{i}{name}" for i in ("", "i") for name in ("add", "sub", "mul", "div", "pow")
) | {"operator.neg"}
NUMBERS = frozenset({"builtins.min", "builtins.max", "builtins.float", "builtins.int",
                     "builtins.abs", "builtins.len", "builtins.round"})  # fmt: skip
LOSSES = ("_loss", "cross_entropy", "binary_cross_entropy_with_logits")
ASKED = {"numel": 1, "nelement": 1, "dim": 0, "ndimension": 0}
DEEP = 12


def answer(value: Value, name: str) -> Value | None:
    """Return what a method says of the size of a tensor of one number; None of any other."""
    is_asked = name in ASKED and isinstance(value, Result) and is_scalar(value)
    return Known(ASKED[name]) if is_asked else None


def is_scalar(value: Value, depth: int = DEEP) -> bool:
    """Tell whether a value is certainly one number, in a tensor or not."""
    if isinstance(value, Known):
        return isinstance(value.value, (int, float))
    if not isinstance(value, Result) or depth == 0:
        return False
    last = value.maker.rsplit(".", 1)[-1]
    if value.maker in NUMBERS or value.maker.startswith("math.") or value.maker == ".item":
        return True
    if value.maker in ARITHMETIC:
        return all(is_scalar(v, depth - 1) for v in value.args)
    if value.maker.startswith("torch.nn.functional.") and last.endswith(LOSSES):
        return _is_reduced(value)
    if value.maker == "()" and isinstance(value.receiver, Result):
        loss = value.receiver
        return loss.maker.startswith("torch.nn.") and loss.maker.endswith("Loss") and _is_reduced(
            loss
        )  # fmt: skip
    taken = 0 if value.receiver is not None else 1
    is_tensor = value.maker in (f".{last}", f"torch.{last}")
    is_whole = len(value.args) == taken and not value.kwargs
    return last in REDUCES and is_tensor and is_whole


def _is_reduced(loss: Result) -> bool:
    return "reduction" not in loss.kwargs or constant(loss.kwargs["reduction"]) in ("mean", "sum")
