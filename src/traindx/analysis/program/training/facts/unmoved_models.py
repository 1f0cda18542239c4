"""Models that stay on the CPU, where they were made, while the program moves others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.library import PREPARES
from traindx.analysis.program.execution.values import Answer, Instance, Result, Value
from traindx.analysis.program.training.layers import is_module, registered

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# engines that move what they prepare: models when they do so, batches as they come
ENGINES = ("Accelerator", "Fabric")
PLACED_BY_HAND = frozenset({"device_placement", "move_to_device", "cpu", "accelerator", "**"})
MOVES = frozenset({".to", ".cuda", ".cpu", ".xpu", ".to_empty", ".type", "._apply"})
COPIES = frozenset({"copy.deepcopy", "copy.copy"})


def moves_what_it_prepares(event: ProgramEvent) -> bool:
    """Tell whether an engine puts all that an event hands it onto its device."""
    engine = event.receiver
    if event.name[1:] not in PREPARES or not isinstance(engine, Result):
        return False
    is_known = engine.maker.rsplit(".", 1)[-1] in ENGINES
    return is_known and not PLACED_BY_HAND & {*engine.kwargs, *event.kwargs}


def prepared_by(event: ProgramEvent) -> tuple[Value, ...]:
    """Return what an engine is handed to be put onto its device."""
    return tuple(event.args) if moves_what_it_prepares(event) else ()


def stays_on_cpu(story: Story, model: Value, until: ProgramEvent) -> bool:
    """Tell whether a model is surely where it was made, on the CPU, at the time of an event."""
    parts = registered(model)
    if not _is_made_here(model) or any(_says_device(part) for part in parts):
        return False
    if all(event.receiver is model for event in story.index.giving(model)):
        return False  # it was made elsewhere, and may have been moved there
    known = {id(part) for part in parts}
    for event in story.recall(_movers):
        if event.order < until.order and any(id(v) in known for v in _moved(event)):
            return False
    if story.escapes(model, before=until) is not Answer.NO:
        return False
    copy = next((e for e in story.recall(_copies) if e.result is model), None)
    return copy is None or stays_on_cpu(story, copy.args[0], copy)


def _is_made_here(model: Value) -> bool:
    if isinstance(model, Instance):
        return is_module(model) and not {"to", "cuda", "_apply"} & _methods(model)
    return isinstance(model, Result) and model.maker.startswith("torch.nn.")


def _methods(model: Instance) -> set[str]:
    return {name for cls in model.cls.lineage() for name in cls.methods}


def _says_device(part: Value) -> bool:
    return isinstance(part, Result) and bool({"device", "**"} & part.kwargs.keys())


def _movers(story: Story) -> list[ProgramEvent]:
    names = {f".{name}" for name in PREPARES} | MOVES
    return [e for e in story.events if e.name in names]


def _moved(event: ProgramEvent) -> Iterator[Value]:
    """Yield the modules that an event may move."""
    owners = event.args if event.name not in MOVES else (event.receiver,)
    for owner in owners:
        if owner is not None:
            yield from registered(owner)


def _copies(story: Story) -> list[ProgramEvent]:
    return [e for e in story.events if e.name in COPIES and e.args]
