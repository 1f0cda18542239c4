"""What an event does to train: forward, backward, step, zero_grad, clip, mode, save, load …"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Choice,
    Instance,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.kinds import Kind, Nature, is_module_class
from traindx.analysis.program.training.operations import is_in_place, operation_of

CLIPS = frozenset(
    {"clip_grad_norm_", "clip_grad_value_", "clip_gradients", "clip_grads_with_norm_",
     "clip_grad_norm"}
)  # fmt: skip
SAVES = frozenset({"torch.save", "safetensors.torch.save_file", "joblib.dump", "pickle.dump"})
LOADS = frozenset({"torch.load", "safetensors.torch.load_file", "joblib.load", "pickle.load"})


BOUNDS = frozenset({"clamp", "clip", "clamp_max", "clamp_min", "hardtanh"})
KindOf = Callable[[Value | None], Nature]


class Do(str, Enum):
    """The acts of a training program."""

    ZERO_GRAD = "zero_grad"
    FORWARD = "forward"
    BACKWARD = "backward"
    GRAD = "autograd.grad"
    UNSCALE = "unscale"
    CLIP = "clip"
    STEP = "step"  # of an optimizer, also through a scaler
    SCALER_UPDATE = "scaler update"
    SCHEDULER_STEP = "scheduler step"
    TRAIN_MODE = "train mode"
    EVAL_MODE = "eval mode"
    MANUAL_UPDATE = "manual update"
    SAVE = "save"
    LOAD = "load"
    LOAD_STATE = "load state"


@dataclass(frozen=True, slots=True, eq=False)
class Deed:
    """An event and what it does: `subject` is the optimizer, model, loss or scheduler of it."""

    do: Do
    event: ProgramEvent
    subject: Value | None
    through: Value | None = None  # the scaler or engine that does it

    @property
    def text(self) -> str:
        """How the program writes the subject."""
        node = self.event.node
        func = node.func if isinstance(node, ast.Call) else None
        if self.through is not None and isinstance(node, ast.Call) and node.args:
            return self.event.module.source(node.args[0])
        is_method = isinstance(func, ast.Attribute) and (
            self.do is not Do.FORWARD or func.attr in ("forward", "__call__")
        )
        target = func.value if isinstance(func, ast.Attribute) and is_method else func
        return self.event.module.source(target) if isinstance(target, ast.expr) else ""


def deed_of(event: ProgramEvent, kind_of: KindOf) -> Deed | None:
    """Return what an event does to train; None where it does nothing of the kind."""
    if event.act is Form.STORE:
        return _store(event)
    if event.is_own and event.name == "forward":
        return _forward(event, kind_of)
    if event.is_own:
        return None
    last = event.name.rsplit(".", 1)[-1]
    if last in CLIPS:
        return Deed(Do.CLIP, event, event.args[0] if event.args else None)
    if event.name in ("torch.autograd.grad", "torch.func.grad", "torch.func.grad_and_value"):
        return Deed(Do.GRAD, event, event.args[0] if event.args else None)
    if event.name == "torch.autograd.backward" and event.args:
        return Deed(Do.BACKWARD, event, event.args[0])
    if event.name in SAVES or last in ("save_pretrained", "save_checkpoint", "save_state"):
        return Deed(Do.SAVE, event, event.args[0] if event.args else None)
    if event.name in LOADS:
        return Deed(Do.LOAD, event, event.args[0] if event.args else None)
    if event.name == "()":
        return _called(event, kind_of)
    if event.receiver is not None and event.name.startswith("."):
        return _method(event, last, kind_of)
    return _update(event)


def _called(event: ProgramEvent, kind_of: KindOf) -> Deed | None:
    kind = kind_of(event.receiver).kind
    return Deed(Do.FORWARD, event, event.receiver) if kind is Kind.MODEL else None


def _forward(event: ProgramEvent, kind_of: KindOf) -> Deed | None:
    model = event.receiver
    if isinstance(model, Instance) and is_module_class(model.cls.foreign):
        return Deed(Do.FORWARD, event, model)
    return None


def _method(event: ProgramEvent, name: str, kind_of: KindOf) -> Deed | None:
    receiver = event.receiver
    if name in ("backward", "manual_backward"):
        return _backward(event, name, kind_of)
    if name == "zero_grad":
        return Deed(Do.ZERO_GRAD, event, receiver)
    if name == "unscale_":
        return Deed(Do.UNSCALE, event, event.args[0] if event.args else None, receiver)
    if name == "load_state_dict":
        return Deed(Do.LOAD_STATE, event, receiver)
    if name in ("train", "eval"):
        return _mode(event, name, kind_of)
    if name == "forward":
        return _called(event, kind_of)
    if name in ("step", "update"):
        return _step(event, name, kind_of)
    return _update(event)


def _backward(event: ProgramEvent, name: str, kind_of: KindOf) -> Deed:
    kind = kind_of(event.receiver).kind
    if event.args and (kind in (Kind.ENGINE, Kind.MODEL) or name == "manual_backward"):
        return Deed(Do.BACKWARD, event, event.args[0], event.receiver)
    return Deed(Do.BACKWARD, event, event.receiver)


def _step(event: ProgramEvent, name: str, kind_of: KindOf) -> Deed | None:
    kind = kind_of(event.receiver).kind
    if name == "update":
        return Deed(Do.SCALER_UPDATE, event, event.receiver) if kind is Kind.SCALER else None
    if kind is Kind.SCALER:
        return Deed(Do.STEP, event, event.args[0] if event.args else None, event.receiver)
    if kind is Kind.SCHEDULER:
        return Deed(Do.SCHEDULER_STEP, event, event.receiver)
    if kind in (Kind.OPTIMIZER, Kind.MODEL, Kind.ENGINE):  # a DeepSpeed engine steps itself
        return Deed(Do.STEP, event, event.receiver)
    return None


def _mode(event: ProgramEvent, name: str, kind_of: KindOf) -> Deed | None:
    if kind_of(event.receiver).kind not in (Kind.MODEL, Kind.UNKNOWN, Kind.LOSS):
        return None
    if len(event.args) > 1 or (name == "eval" and event.args):
        return None
    given = event.argument("mode", 0)
    if given is None:
        return Deed(Do.TRAIN_MODE if name == "train" else Do.EVAL_MODE, event, event.receiver)
    mode = constant(given)
    if not isinstance(mode, bool):
        return None
    return Deed(Do.TRAIN_MODE if mode else Do.EVAL_MODE, event, event.receiver)


def _store(event: ProgramEvent) -> Deed | None:
    """`p.grad = None` clears, `p.data = p.data - lr * p.grad` updates."""
    value = event.args[0]
    if event.name == "grad" and (constant(value) is None and isinstance(value, Known)):
        return Deed(Do.ZERO_GRAD, event, event.receiver)
    if event.name == "[]" and is_gradient(event.receiver) and constant(value) == 0:
        return Deed(Do.ZERO_GRAD, event, gradient_owner(event.receiver))
    is_bounded = event.name == "grad" or (event.name == "data" and is_gradient(event.receiver))
    if is_bounded and _bounds_gradients(value):
        return Deed(Do.CLIP, event, event.receiver)
    if event.name == "data" and reads_gradients(value) and not is_gradient(event.receiver):
        return Deed(Do.MANUAL_UPDATE, event, event.receiver)
    return None


def _bounds_gradients(value: Value) -> bool:
    """Tell whether a gradient is clamped, or scaled by what gradients say, as by their norm."""
    made = operation_of(value)
    if made is None or not made.operands or not is_gradient(made.operands[0]):
        return False
    is_scaled = made.name in ("mul", "div") and len(made.operands) > 1
    return made.name in BOUNDS or (is_scaled and reads_gradients(made.operands[1]))


def _update(event: ProgramEvent) -> Deed | None:
    """Weights changed in place by their gradients, and gradients cleared by hand."""
    if not is_in_place(event.name):
        return None
    changed = event.receiver if event.receiver is not None else event.args[0]
    rest = event.args if event.receiver is not None else event.args[1:]
    if is_gradient(changed):
        is_zero = event.name in (".zero_", "torch._foreach_zero_") or (
            event.name in (".fill_", ".mul_", ".copy_", "operator.imul", "torch._foreach_mul_")
            and rest
            and constant(rest[0]) in (0, 0.0)
        )
        if is_zero:
            return Deed(Do.ZERO_GRAD, event, gradient_owner(changed))
        is_scaled = event.name in (".mul_", ".div_", "operator.imul", "operator.itruediv")
        is_bound = event.name in (".clamp_", ".clip_", ".clamp_min_", ".clamp_max_") or (
            is_scaled and bool(rest) and reads_gradients(rest[0])  # by their own norm
        )
        return Deed(Do.CLIP, event, gradient_owner(changed)) if is_bound else None
    if any(reads_gradients(value) for value in rest):
        return Deed(Do.MANUAL_UPDATE, event, changed)
    return None


def is_gradient(value: Value | None) -> bool:
    """Tell whether a value is the gradient of a parameter: `p.grad`, `p.grad.data`, or several."""
    if isinstance(value, Items) and value.fields:
        return all(is_gradient(member) for member in value.members)
    while isinstance(value, Part) and value.key == "data":
        value = value.of
    return isinstance(value, Part) and value.key == "grad"


def gradient_owner(value: Value | None) -> Value | None:
    """Return the parameter that a gradient is of."""
    if isinstance(value, Items) and value.fields:
        value = value.members[0]
    while isinstance(value, Part):
        if value.key == "grad":
            return value.of
        value = value.of
    return None


def reads_gradients(value: Value) -> bool:
    """Tell whether a value was computed from gradients."""
    for found in origins(value, 200):
        if is_gradient(found):
            return True
        if isinstance(found, Result) and found.maker in ("torch.autograd.grad", "torch.func.grad"):
            return True
    return False


def model_of(value: Value | None) -> Value | None:
    """Return the model that parameters are of: `p` of `for p in model.parameters()`."""
    while value is not None:
        if isinstance(value, Result) and value.maker in (".parameters", ".named_parameters"):
            return value.receiver
        if isinstance(value, (Part, Choice, Items)) or (isinstance(value, Result) and value.inputs):
            value = value.inputs[0] if value.inputs else None
        else:
            return value if isinstance(value, Instance) else None
    return None
