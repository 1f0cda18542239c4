"""The moments of a training loop at which something can be changed.

Interventions subscribe here instead of each replacing the same functions of torch. With a closure,
as Lightning and LBFGS use it, gradients are complete only inside of `step`, so `update` is told
after the closure then.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim import optimizer as optimizer_module

from .change_report import ChangeReport, ChangeReports
from .replacement import replace

MOMENTS = ("step_begins", "update", "step_ends", "backward_begins", "backward_ends")

steps = 0  # of all optimizers, as the recorder counts them
optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
scalers: list[Any] = []  # a weak reference to the last GradScaler that scaled a loss

_listeners: dict[str, list[Callable[..., Any]]] = {moment: [] for moment in MOMENTS}
_session: list[Any] = []  # of the recorder, which may run parts of the program again
_depth = {"step": 0, "backward": 0}
_ending: list[Callable[[], Any]] = []


def on(moment: str, report: ChangeReport, listener: Callable[..., Any]) -> None:
    """Call a listener at a moment; it is told the optimizer, or the tensors of a backward pass."""
    _listeners[moment].append(report.guard(listener))


def at_end(action: Callable[[], Any]) -> None:
    """Call an action when `stop` ends the process early."""
    _ending.append(action)


def end() -> None:
    """Let the recorder and the reports finish."""
    for session in _session:
        if session is not None:
            session.finish()
    for action in _ending:
        action()


def install(reports: ChangeReports) -> None:
    """Begin to listen to optimizers and backward passes."""
    _ending.append(reports.write)
    optimizer_module.register_optimizer_step_pre_hook(_step_begins)
    replace(torch.optim.Optimizer, "__init__", _remembering)
    replace(torch.amp.GradScaler, "scale", _scaling)
    own = ChangeReport()

    def write_sometimes(optimizer: Any) -> None:
        if steps & (steps - 1) == 0:
            reports.write()

    on("step_ends", own, write_sometimes)


def settle(session: Any) -> None:
    """Take the place before the recorder's, so that it sees what was changed."""
    _session.append(session)
    replace(torch.autograd, "backward", _backward)
    optimizer_module.register_optimizer_step_post_hook(_step_ends)


def is_quiet() -> bool:
    """Tell whether what happens now is no part of the training: traced, or replayed."""
    if torch.compiler.is_compiling():
        return True
    return bool(_session and getattr(_session[0], "is_replaying", False))


def sessions() -> list[Any]:
    """Return the sessions of the recorder in this process, if it records."""
    return [s for s in _session if hasattr(s, "is_replaying")]


def live_optimizers() -> list[torch.optim.Optimizer]:
    """Return the optimizers of this process that hold parameters."""
    return [o for o in optimizers if o.__dict__.get("param_groups")]


def parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """Yield the parameters that an optimizer holds."""
    for group in optimizer.param_groups:
        yield from group["params"]


def _tell(moment: str, subject: Any) -> None:
    for listener in _listeners[moment]:
        listener(subject)


def _step_begins(optimizer: Any, args: Any, kwargs: Any) -> Any:
    if is_quiet():
        return None
    _depth["step"] += 1
    optimizers.add(optimizer)
    _tell("step_begins", optimizer)
    closure = kwargs.get("closure") or (args[1] if len(args) > 1 else None)
    if not callable(closure):
        _tell("update", optimizer)
        return None

    def evaluated(*inner: Any, **named: Any) -> Any:
        loss = closure(*inner, **named)
        _tell("update", optimizer)
        return loss

    if "closure" in kwargs:
        return args, {**kwargs, "closure": evaluated}
    return (args[0], evaluated, *args[2:]), kwargs


def _step_ends(optimizer: Any, args: Any, kwargs: Any) -> None:
    global steps  # noqa: PLW0603
    if is_quiet():
        return
    _depth["step"] = max(0, _depth["step"] - 1)
    if not _depth["step"]:
        steps += 1
    _tell("step_ends", optimizer)


def _backward(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        is_ours = not _depth["backward"] and not is_quiet()
        if is_ours:
            _tell("backward_begins", tensors)
        _depth["backward"] += 1
        try:
            result = original(tensors, *args, **kwargs)
        finally:
            _depth["backward"] -= 1
        if is_ours:
            _tell("backward_ends", tensors)
        return result

    return backward


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        optimizers.add(self)

    return __init__


def _scaling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def scale(scaler: Any, outputs: Any) -> Any:
        if scaler.is_enabled():
            scalers[:] = [weakref.ref(scaler)]
        return original(scaler, outputs)

    return scale
