"""Whether a value is true, where the source decides it."""

from __future__ import annotations

from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    ClassValue,
    External,
    FunctionValue,
    Generator,
    Instance,
    Items,
    Known,
    Method,
    Part,
    PartialCall,
    Result,
    Table,
    Value,
)

MADE = (FunctionValue, ClassValue, Instance, Items, Table, Generator, Method, PartialCall)
DTYPES = {"half": "float16", "float": "float32", "double": "float64", "long": "int64",
          "int": "int32", "short": "int16"}  # fmt: skip
ALWAYS_TRUE = ("torch.optim.", "torch.amp.")  # objects without a length
TENSOR_METHODS = frozenset({".detach", ".clone", ".mean", ".sum", ".item", ".cpu", ".float",
                            ".softmax", ".squeeze", ".view", ".to", ".cuda", ".long", ".reshape",
                            ".unsqueeze", ".flatten", ".transpose", ".permute", ".argmax",
                            ".contiguous", ".bool", ".int", ".repeat", ".astype",
                            ".numpy", ".double", ".half", ".expand"})  # fmt: skip
# functions of torch's own that make a tensor; the rest of its first level sets or asks something
TENSORS = frozenset(
    f"{home}.{name}"
    for home in ("torch", "numpy")
    for name in ("stack", "cat", "concat", "concatenate", "tensor", "as_tensor", "array", "asarray",
                 "zeros", "ones", "full", "empty", "eye", "arange", "linspace", "rand", "randn",
                 "randint", "randperm", "zeros_like", "ones_like", "rand_like", "randn_like",
                 "full_like", "from_numpy", "where", "exp", "log", "sin", "cos", "tanh", "abs",
                 "sigmoid", "relu", "softmax", "matmul", "einsum", "clamp", "clip", "mean", "sum",
                 "flatten", "roll", "flip", "bernoulli", "normal", "triu", "tril")
)  # fmt: skip
LOADER = "torch.utils.data.DataLoader"
SIZED = ("__len__", "__bool__")


ARITHMETIC = frozenset({"add", "sub", "mul", "div", "matmul", "pow", "neg", "mod"})
# what functions of torch's give that is no tensor
NO_TENSORS = ("torch.load", "torch.save", "torch.set_", "torch.get_", "torch.is_", "torch.manual_",
              "torch.seed", "torch.compile", "torch.device", "torch.no_grad", "torch.enable_",
              "torch.inference_mode", "torch.use_", "torch.Generator", "torch.finfo", "torch.Size",
              "torch.autocast", "torch.initial_seed")  # fmt: skip


def truth_of(value: Value) -> bool | None:
    """Return whether a value is true; None where the source does not decide it."""
    if isinstance(value, Known):
        return bool(value.value)
    if isinstance(value, (FunctionValue, ClassValue)):
        return True
    if isinstance(value, Instance):
        return _truth_of_object(value)
    if isinstance(value, Result) and value.maker in ("builtins.any", "builtins.all"):
        return _truth_of_several(value)
    if isinstance(value, Result) and value.maker.startswith(ALWAYS_TRUE):
        return True if is_object(value) else None
    if isinstance(value, (Items, Table)):
        return bool(value.fields) if value.is_whole or value.fields else None
    if isinstance(value, Choice):
        found = {truth_of(o) for o in value.options}
        return found.pop() if len(found) == 1 else None
    return None


def _truth_of_several(made: Result) -> bool | None:
    """Return the truth of `any` or `all` of a list: one member decides, or every one does."""
    given = made.args[0] if len(made.args) == 1 else None
    if not isinstance(given, Items):
        return None
    decides = made.maker == "builtins.any"
    found = {truth_of(member) for member in given.members}
    if decides in found:
        return decides
    return not decides if given.is_whole and None not in found else None


def is_none(value: Value) -> bool | None:
    """Return whether a value is None; None where the source does not decide it."""
    if isinstance(value, Known):
        return value.value is None
    if isinstance(value, MADE) or is_object(value) or _is_computed(value):
        return False
    if isinstance(value, Choice):
        found = {is_none(o) for o in value.options}
        return found.pop() if len(found) == 1 else None
    return False if _is_of_batch(value) else None


def _is_of_batch(value: Value) -> bool:
    """Tell whether a value is a part of a batch that torch stacks itself: None is refused there."""
    row = value.of if isinstance(value, Part) and isinstance(value.key, int) else None
    drawn = row.args[0] if isinstance(row, Result) and row.maker == "builtins.next" else None
    while (
        isinstance(drawn, Result) and drawn.maker in ("builtins.iter", "tqdm.tqdm") and drawn.args
    ):
        drawn = drawn.args[0]
    is_loader = isinstance(drawn, Result) and drawn.maker.startswith(LOADER)
    return is_loader and not {"collate_fn", "**"} & drawn.kwargs.keys()  # type: ignore[union-attr]


def _is_computed(value: Value) -> bool:
    """Tell whether a value is a tensor that a function of torch's, a layer or a method gave."""
    if not isinstance(value, Result):
        return False
    layer = value.receiver
    if value.maker == "()":
        return isinstance(layer, Result) and layer.maker.startswith("torch.nn.")
    home, _, last = value.maker.rpartition(".")
    if home == "operator":
        return last in ARITHMETIC and any(map(_is_computed, value.args))
    if home in ("torch", "torch.nn") and not value.maker.startswith(NO_TENSORS):
        return home == "torch" or last == "Parameter"
    is_known = value.maker in TENSOR_METHODS and layer is not None and _is_computed(layer)
    return is_known or value.maker.startswith("torch.nn.functional.") or value.maker in TENSORS


def is_recorded(value: Value) -> bool | None:
    """Return whether autograd has the history of a computed tensor; None where nobody can say."""
    is_made = isinstance(value, Result) and value.maker != ".detach" and _is_computed(value)
    return False if is_made and getattr(value, "gradients", None) is Answer.NO else None


def is_object(value: Value) -> bool:
    """Tell whether a value is an object that a class out of sight was called for, or a number."""
    if not isinstance(value, Result) or value.receiver is not None:
        return False
    root, _, last = value.maker.rpartition(".")
    return bool(root) and (last[:1].isupper() or root == "operator")


def _truth_of_object(value: Instance) -> bool | None:
    """An object is true unless its class says otherwise; a module has no length."""
    if any(name in cls.methods for cls in value.cls.lineage() for name in SIZED):
        return None
    return True if all(base == "torch.nn.Module" for base in value.cls.foreign) else None


def is_one(left: Value, right: Value) -> bool | None:
    """Return whether two values are one object; None where the source does not decide it."""
    if isinstance(left, Known) and isinstance(right, Known):
        return left.value is right.value
    apart = (Instance, FunctionValue, ClassValue, Items, Table)
    if all(isinstance(v, apart) or _is_kept(v) for v in (left, right)):
        return left is right
    return None


def _is_kept(value: Value) -> bool:
    """Tell whether a value is an optimizer, model or the like, of which no copy goes about."""
    return is_object(value) and isinstance(value, Result) and value.maker.startswith("torch.")


def is_same_dtype(left: Value, right: Value) -> bool | None:
    """Return whether two number types of torch are one; None where either is something else."""
    names = [_dtype_named(v) for v in (left, right)]
    return names[0] == names[1] if all(names) else None


def _dtype_named(value: Value) -> str:
    if not isinstance(value, External) or not value.name.startswith("torch."):
        return ""
    name = DTYPES.get(value.name[6:], value.name[6:])
    return name if name.startswith(("float", "bfloat", "int", "uint")) else ""
