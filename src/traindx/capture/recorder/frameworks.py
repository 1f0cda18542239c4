"""The step of a training framework, as it can be run once more: Hugging Face and Lightning."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from . import places

_LOGGING = ("log", "log_dict", "print")


class FrameworkStep:
    """A computation of the loss that can be replayed, and the objects that it works on."""

    def __init__(
        self,
        run: Callable[[], Any],
        objects: list[Any],
        *,
        is_wide: bool = True,
        context: Callable[[], Any] = contextlib.nullcontext,
    ) -> None:
        self.run, self.objects, self.is_wide, self.context = run, objects, is_wide, context


def framework_step(stack: FrameType, batch: Any) -> FrameworkStep | None:
    """Return the step that the frames of a framework are in the middle of."""
    frames = list(places.frames_below(stack))
    return _hugging_face(frames, batch) or _lightning(frames, batch)


def _ancestors(value: object) -> set[str]:
    return {kind.__name__ for kind in type(value).__mro__}


def _hugging_face(frames: list[FrameType], batch: Any) -> FrameworkStep | None:
    for frame in frames:
        trainer = frame.f_locals.get("self")
        if not callable(getattr(type(trainer), "compute_loss", None)):
            continue
        model, inputs = frame.f_locals.get("model"), frame.f_locals.get("inputs")
        if model is None or inputs is None:
            continue
        context = getattr(trainer, "compute_loss_context_manager", contextlib.nullcontext)

        def run(trainer: Any = trainer, model: Any = model, inputs: Any = inputs) -> Any:
            given = trainer._prepare_inputs(dict(inputs))
            return trainer.compute_loss(model, dict(given))

        return FrameworkStep(run, [trainer, model], context=context)
    return None


def _lightning(frames: list[FrameType], batch: Any) -> FrameworkStep | None:
    module = next((m for m in _lightning_modules(frames) if m.automatic_optimization), None)
    if module is None:
        return None
    arguments: list[Any] = []
    for frame in frames:
        given = frame.f_locals.get("kwargs")
        if isinstance(given, dict) and "batch" in given:
            arguments = list(given.values())
            break
    if not arguments:
        arguments = [batch, 0]

    def run() -> Any:
        for name in _LOGGING:  # taken back with the module's other attributes
            module.__dict__[name] = _nothing
        outcome = module.training_step(*arguments)
        return outcome["loss"] if isinstance(outcome, dict) else outcome

    return FrameworkStep(run, [module], context=lambda: _precision(module))


def _nothing(*arguments: Any, **options: Any) -> None:
    return None


def _lightning_modules(frames: list[FrameType]) -> Iterator[Any]:
    for frame in frames:
        for name in ("model", "pl_module", "lightning_module", "self"):
            value = frame.f_locals.get(name)
            if value is None:
                continue
            if "LightningModule" in _ancestors(value):
                yield value
            elif "Trainer" in _ancestors(value) and hasattr(type(value), "lightning_module"):
                yield value.lightning_module


def _precision(module: Any) -> Any:
    plugin = getattr(getattr(module, "trainer", None), "precision_plugin", None)
    context = getattr(plugin, "train_step_context", None) or getattr(
        plugin, "forward_context", None
    )
    return context() if context is not None else contextlib.nullcontext()
