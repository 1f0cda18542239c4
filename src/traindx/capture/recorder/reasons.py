"""Says in words why an operation gave NaN or infinity, from what it was given."""

from __future__ import annotations

from math import isfinite, isnan, log
from typing import Any

import torch

from .summaries import local_part

_LOGS = frozenset({"log", "log2", "log10", "log1p"})
_EXPONENTIALS = {"exp": 1.0, "expm1": 1.0, "exp2": 0.6931471805599453, "sinh": 1.0, "cosh": 1.0}
_ROOTS = frozenset({"sqrt", "rsqrt"})
_DIVISIONS = frozenset({"div", "true_divide", "reciprocal", "floor_divide", "remainder", "fmod"})
_ARITHMETIC = frozenset({"mul", "add", "sub", "rsub", "pow", *_DIVISIONS})
_SOFTMAXES = frozenset(
    {"softmax", "log_softmax", "logsumexp", "scaled_dot_product_attention", "safe_softmax"}
)
_SUMS = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "matmul", "convolution", "sum", "mean", "mul", "add", "sub",
     "cumsum", "prod", "square", "norm", "dot", "var", "var_mean", "std"}
)  # fmt: skip


def explain(op: str, args: Any, keywords: Any, result: Any) -> str:
    """Return the reason, as far as the inputs show it; an empty text otherwise."""
    try:
        tensors = [t for t in args if _is_readable(t)]
        return _stranger(op, args) or _reason(op, tensors, list(args), result)
    except Exception:  # words are not worth a failure
        return ""


def _reason(op: str, tensors: list[Any], args: list[Any], result: Any) -> str:
    first = tensors[0] if tensors else None
    if op in _SOFTMAXES:
        return _softmax(op, tensors)
    if op in _DIVISIONS:
        return _division(op, args)
    if first is None:
        return ""
    low, high = bounds(first)
    if op in _LOGS:
        return _logarithm(op, low)
    if op in _ROOTS:
        return _root(op, low)
    if op in _EXPONENTIALS:
        return _exponential(op, high, first.dtype)
    if op == "pow":
        return _power(first, args, result)
    if op in {"acos", "asin", "atanh", "acosh", "erfinv", "logit"}:
        return f"an input of {op} is outside of where it is defined: {low:.4g} to {high:.4g}"
    if op == "to":
        return _conversion(high if abs(high) >= abs(low) else low, result.dtype)
    if op in {"var", "std", "var_mean"} and first.numel() <= 1:
        return f"{op} of a single value divides by 0"
    if op in {"mean", "nll_loss"}:
        return _average(op, first, args)
    if op in {"batch_norm", "layer_norm", "group_norm", "cudnn_batch_norm"}:
        return f"{op} was given values from {low:.4g} to {high:.4g}"
    return _overflow(op, tensors, args, result)


def _stranger(op: str, args: Any) -> str:
    odd = [a for a in args if isinstance(a, float) and not isfinite(a)]
    if not odd or op not in _ARITHMETIC:
        return ""
    return f"a number that {op} is given is {odd[0]}, one that was computed outside of torch"


def _is_readable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and local_part(value) is not None and value.numel() > 0


def bounds(tensor: Any) -> tuple[float, float]:
    """Return the smallest and the largest value, NaN left aside."""
    values = tensor.detach()
    if values.is_floating_point():
        values = values[~torch.isnan(values)]
    if not values.numel():
        return float("nan"), float("nan")
    return float(values.min()), float(values.max())


def _logarithm(op: str, low: float) -> str:
    edge = -1.0 if op == "log1p" else 0.0
    if low == edge:
        return f"the smallest input of {op} is {edge:.0f}"
    return f"the smallest input of {op} is negative: {low:.4g}" if low < edge else ""


def _root(op: str, low: float) -> str:
    if low < 0:
        return f"{op} of a negative number: {low:.4g}"
    return "rsqrt of 0 divides by 0" if low == 0 and op == "rsqrt" else ""


def _exponential(op: str, high: float, dtype: Any) -> str:
    most = torch.finfo(dtype).max
    edge = log(most) / _EXPONENTIALS[op]
    if not high > edge * 0.999:
        return ""
    kind = str(dtype).replace("torch.", "")
    return f"an input of {op} is {high:.4g}; {op} overflows {kind} above {edge:.1f}"


def _power(base: Any, args: list[Any], result: Any) -> str:
    exponent = args[1] if len(args) > 1 else None
    low, _ = bounds(base)
    if isinstance(exponent, (int, float)):
        if low == 0 and exponent < 0:
            return f"0 to the power of {exponent:g} divides by 0"
        if low < 0 and float(exponent) != int(exponent):
            return f"a negative number, {low:.4g}, to the power of {exponent:g}"
    return _overflow("pow", [base], args[1:], result)


def _division(op: str, args: list[Any]) -> str:
    over, under = ([1.0, *args] if op == "reciprocal" else [*args, None])[:2]
    if isinstance(under, (int, float)):
        return f"{op} by {under:g}" if under == 0 else ""
    if not _is_readable(under):
        return ""
    is_zero = (under == 0).expand(torch.broadcast_shapes(*_shapes(over, under)))
    if not bool(is_zero.any()):
        low = float(under.detach().abs().min())
        return f"the result overflows: the smallest divisor is {low:.4g}"
    top = over if isinstance(over, torch.Tensor) else torch.as_tensor(float(over), device="cpu")
    is_both = is_zero & (top == 0).to(is_zero.device)
    return "0 divided by 0" if bool(is_both.any()) else "a number divided by 0"


def _shapes(*values: Any) -> list[Any]:
    return [value.shape for value in values if isinstance(value, torch.Tensor)]


def _softmax(op: str, tensors: list[Any]) -> str:
    for tensor in tensors:
        values = tensor.detach()
        if not values.is_floating_point() or values.dim() == 0:
            continue
        rows = torch.isneginf(values).all(-1)
        if bool(rows.any()):
            return f"{int(rows.sum())} of {rows.numel()} rows of {op} are all -inf: all is masked"
        if bool(torch.isposinf(values).any()):
            return f"an input of {op} is infinite"
    bools = [t for t in tensors if t.dtype == torch.bool and t.dim()]
    if any(bool((~mask.any(-1)).any()) for mask in bools):
        return f"a row of the mask of {op} leaves nothing: all is masked"
    return ""


def _average(op: str, first: Any, args: list[Any]) -> str:
    if first.numel() == 0:
        return f"{op} of no values divides 0 by 0"
    targets = [a for a in args[1:] if isinstance(a, torch.Tensor) and not a.is_floating_point()]
    if targets and len(args) > 4 and bool((targets[0] == args[4]).all()):
        return "every target is ignored: the mean of no values is 0 divided by 0"
    return ""


def _conversion(value: float, dtype: Any) -> str:
    most = torch.finfo(dtype).max
    if abs(value) <= most:
        return ""
    kind = str(dtype).replace("torch.", "")
    return f"{value:.4g} is beyond the largest number of {kind}, {most:.4g}"


def _overflow(op: str, tensors: list[Any], args: list[Any], result: Any) -> str:
    if op not in _SUMS and op != "pow":
        return ""
    sizes = [max(abs(low), abs(high)) for low, high in map(bounds, tensors) if not isnan(low)]
    if op == "mul":
        sizes += [abs(float(a)) for a in args if isinstance(a, (int, float))]
    if not sizes or not result.is_floating_point():
        return ""
    if float("inf") in sizes:
        return f"an input of {op} is infinite"
    most = torch.finfo(result.dtype).max
    kind = str(result.dtype).replace("torch.", "")
    return f"inputs of {op} are up to {max(sizes):.4g}; the result is beyond {kind}, {most:.4g}"


# ------------------------------------------------------------------------------------- gradients

_STEEP = {
    "sqrt": "the slope of sqrt is infinite at 0",
    "rsqrt": "the slope of rsqrt is infinite at 0",
    "log": "the slope of log is infinite at 0",
    "acos": "the slope of acos is infinite at -1 and 1",
    "asin": "the slope of asin is infinite at -1 and 1",
    "std": "the slope of std is undefined where all values are equal",
    "norm": "the slope of a norm is undefined at 0",
    "linalg_vector_norm": "the slope of a norm is undefined at 0",
    "pow": "the slope of a power below 1 is infinite at 0",
    "cdist": "the slope of a distance is undefined at 0",
    "div": "the slope of a division grows without bound as the divisor goes to 0",
    "atan2": "the slope of atan2 is undefined at (0, 0)",
}


def explain_gradient(op: str, saved: dict[str, Any]) -> str:
    """Return why the gradient of an operation is not finite, from what it had kept."""
    told = _STEEP.get(op, f"the gradient of {op} is not finite although the one it was given is")
    for tensor in saved.values():
        try:
            low, high = bounds(tensor)
        except Exception:
            continue
        if low <= 0 <= high and op in {"sqrt", "log", "std", "pow", "div", "rsqrt"}:
            return f"{told}, and it was at 0" if bool((tensor == 0).any()) else told
    return told
