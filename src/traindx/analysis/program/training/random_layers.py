"""Layers that change the input of a model at random, in evaluation as in training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Instance, Result, Value, origins
from traindx.analysis.program.training.augmentation import ON_PURPOSE, is_for_training
from traindx.analysis.program.training.claims import first_parameter, insert_first
from traindx.analysis.program.training.data import is_draw
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.phases import HeldOutPass, evaluations

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

CHANGES = 400  # values between the change of an input and the input


@dataclass(frozen=True, eq=False)
class RandomLayer:
    """A change of the input by random numbers inside of a model that is evaluated."""

    evaluation: HeldOutPass
    draw: ProgramEvent
    change: Value

    @property
    def name(self) -> str:
        """The class whose forward pass draws."""
        owner = self.draw.within[-1]
        return owner.cls.node.name if isinstance(owner, Instance) else "the model"

    def patch(self) -> str | None:
        """Return the patch that leaves the input alone in evaluation, of a plain layer."""
        owner, name = self.draw.within[-1], first_parameter(self.draw)
        is_forward = self.draw.function_name == "forward" and len(self.draw.within) > 1
        is_plain = isinstance(owner, Instance) and not any(
            isinstance(v, Result) for v in owner.fields.values()
        )
        if not name or not is_forward or not is_plain:
            return None
        return insert_first(self.draw, f"if not self.training:\n    return {name}")


def random_layers(story: Story) -> Iterator[RandomLayer]:
    """Yield what changes inputs at random in evaluation mode, where labels judge the output.

    A draw that has a part in what is wanted of the model is the task: noise to be taken away,
    masked tokens. One behind the first weights is a part of the method: a latent variable.
    """
    draws = story.recall(_draws)
    for evaluation in evaluations(story) if draws else ():
        forward, model = evaluation.forward.event, evaluation.forward.subject
        if not forward.args or _is_meant(forward):
            continue
        within = [d for d in draws if d.turns == forward.turns and d.within[0] is model]
        for draw in within:
            change = _changed_input(story, forward, draw)
            if change is not None and _is_judged(story, forward, draw):
                yield RandomLayer(evaluation, draw, change)
                break


def _draws(story: Story) -> list[ProgramEvent]:
    """Every draw in a forward pass in evaluation mode that no condition keeps to training."""
    return [
        e
        for e in story.events
        if e.within
        and e.pass_is_training is Answer.NO
        and e.result is not None
        and is_draw(e.result)
        and not is_for_training(e)
    ]


def _is_meant(forward: ProgramEvent) -> bool:
    """Tell whether the names around an evaluation say that it is random on purpose."""
    callers = (getattr(c.module.function_of(c.node), "name", "") for c in forward.callers)
    around = (forward.function_name, *callers)
    return any(word in name.lower() for name in around for word in ON_PURPOSE)


def _changed_input(story: Story, forward: ProgramEvent, draw: ProgramEvent) -> Value | None:
    """The first value that mixes a draw into the input, before any weights."""
    given = {id(a) for a in forward.args}
    pending, seen = [draw.result], {id(draw.result)}
    while pending and len(seen) < CHANGES:
        value = pending.pop(0)
        for made in story.made_from(value) if value is not None else ():
            if id(made) in seen or _has_weights(made):
                continue
            seen.add(id(made))
            others = [v for v in made.inputs if v is not value]
            if any(_is_input(v, given) for v in others):
                return made
            pending.append(made)
    return None


def _is_input(value: Value, given: set[int], depth: int = 20) -> bool:
    """Tell whether a value has the numbers of an input, not only its shape, and no weights."""
    if id(value) in given:
        return True
    is_number = isinstance(value, Result) and value.maker in ("builtins.len", ".size", ".dim")
    if depth == 0 or is_number or not isinstance(value, Result) or is_draw(value):
        return False
    return not _has_weights(value) and any(_is_input(v, given, depth - 1) for v in value.inputs)


def _has_weights(value: Value) -> bool:
    """Tell whether a layer of torch computed a value, or it is a parameter."""
    if not isinstance(value, Result):
        return False
    layer = value.receiver if value.maker == "()" else None
    is_layer = isinstance(layer, Result) and layer.maker.startswith("torch.nn.")
    return is_layer or value.maker == "torch.nn.Parameter"


def _is_judged(story: Story, forward: ProgramEvent, draw: ProgramEvent) -> bool:
    """Tell whether an output is set against labels that neither the draw nor the input made."""
    for operands in _comparisons(story, forward.result):
        sides = [list(origins(v, CHANGES)) for v in operands]
        outputs = [any(v is forward.result for v in side) for side in sides]
        if len(sides) != 2 or outputs.count(True) != 1:
            continue
        wanted = sides[outputs.index(False)]
        made = [draw.result, *forward.args]
        return not any(v is m for v in wanted for m in made)
    return False


def _comparisons(story: Story, output: Value | None) -> Iterator[tuple[Value, ...]]:
    """What an output, or what is computed of it, is compared in, by a loss or for equality."""
    pending, seen = [output], {id(output)}
    while pending and len(seen) < CHANGES:
        value = pending.pop(0)
        for made in story.made_from(value) if value is not None else ():
            operation = operation_of(made)
            if operation is not None and operation.name in ("eq", *LOSSES):
                yield operation.operands[:2]
            elif id(made) not in seen:
                seen.add(id(made))
                pending.append(made)
