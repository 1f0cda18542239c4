"""What a model is given in validation and in training, where the two differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import function_name, source_text
from traindx.analysis.program.training.data import Role, feeds, loop_runs, named_role, use_of
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.preprocessing import Preprocessing, preprocessing_of
from traindx.analysis.program.training.program import Story

ON_PURPOSE = ("robust", "noise", "noisy", "corrupt", "attack", "advers", "tta", "perturb", "stress")


@dataclass(frozen=True, eq=False)
class ModelPass:
    """A call of a model on a batch, and what was done to its input."""

    event: ProgramEvent
    model: Value | None
    role: Role
    given: Value
    input: Preprocessing


@dataclass(frozen=True, eq=False)
class InputDifference:
    """A pass of validation whose input is made in another way than in training."""

    held: ModelPass
    trained: ModelPass
    says: str
    is_noise: bool


def input_differences(story: Story) -> Iterator[InputDifference]:
    """Yield the calls of models on held-out batches whose inputs training does not make so."""
    passes = list(_passes(story))
    for held in passes:
        if held.role is not Role.HELD_OUT:
            continue
        trained = [p for p in passes if p.role is Role.TRAIN and p.model is held.model]
        found = _compare(story, held, trained, passes) if trained else None
        if found is not None:
            yield found


def _passes(story: Story) -> Iterator[ModelPass]:
    """The calls of models in loops, with the role of the loop around."""
    uses = {id(r): (r.over, use_of(story, r)) for r in loop_runs(story)}
    for deed in story.does(Do.FORWARD):
        event = deed.event
        if event.within or event.guards or not event.args or not event.loops:
            continue
        input_ = preprocessing_of(story, event.args[0], into_dataset=False)
        found = [_role(story, *uses[id(r)], input_) for r in reversed(event.loops)]
        role = next((r for r in found if r is not Role.UNKNOWN), None)
        if role is not None:
            yield ModelPass(event, deed.subject, role, event.args[0], input_)


def _role(story: Story, over: Value | None, use: Role, given: Preprocessing) -> Role:
    """What a loop is for; one that only evaluates needs a hint that its data are held out."""
    if use is not Role.HELD_OUT or over is None:
        return use
    source = source_of(over)
    data = given.source.inputs[:1]
    known = next((f.role for f in feeds(story) if f.loader is source), named_role(source, *data))
    return known if known is Role.HELD_OUT else Role.UNKNOWN


def _compare(
    story: Story, held: ModelPass, trained: list[ModelPass], passes: list[ModelPass]
) -> InputDifference | None:
    """Compare inputs from the data on where these are in sight, else from the batch on."""
    name = function_name(held.event).lower()
    known = all(p.input.is_known for p in (*trained, held))
    if any(word in name for word in ON_PURPOSE) or not known:
        return None
    beside = [p for p in passes if p.event.node is not held.event.node and p.role is held.role
              and p.model is held.model and p.input.source is held.input.source]  # fmt: skip
    if any(not p.input.is_known or _is_as(p.input, trained) for p in beside):
        return None
    deep = [replace(p, input=preprocessing_of(story, p.given)) for p in (held, *trained)]
    if all(p.input.is_known for p in deep):
        held, *trained = deep
    return _difference(held, trained)


def _difference(held: ModelPass, trained: list[ModelPass]) -> InputDifference | None:
    noise = held.input.noise
    if noise and all(len(p.input.noise) < len(noise) for p in trained):
        says = f"`{source_text(noise[-1])}` in validation and not in training"
        return InputDifference(held, trained[0], says, is_noise=True)
    if all(p.input.scaling != held.input.scaling and _is_like(p, held) for p in trained):
        says = f"{_words(held.input)} in validation, {_words(trained[0].input)} in training"
        return InputDifference(held, trained[0], says, is_noise=False)
    return None


def _is_like(trained: ModelPass, held: ModelPass) -> bool:
    """Tell whether two inputs take the same way but for their scale."""
    return set(held.input.others) <= set(trained.input.others)


def _is_as(changes: Preprocessing, trained: list[ModelPass]) -> bool:
    """Tell whether an input is as in training: what stands beside it is a second view of it."""
    alike = (p.input for p in trained if p.input.scaling == changes.scaling)
    return any(len(p.noise) >= len(changes.noise) for p in alike)


def _words(changes: Preprocessing) -> str:
    steps = " ".join(changes.scaling).replace("+ -", "- ")
    return f"`x {steps}`" if steps else "`x`"
