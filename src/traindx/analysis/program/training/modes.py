"""In which mode models run, what set it, and what in them depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Guard, ProgramEvent
from traindx.analysis.program.execution.library import modules_in
from traindx.analysis.program.execution.values import (
    Answer,
    External,
    Instance,
    Items,
    Known,
    ModeRead,
    Part,
    Result,
    SuperValue,
    Table,
    Unknown,
    Value,
    constant,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.kinds import words_of
from traindx.analysis.program.training.layers import Assigned, assigned, mode_dependent_layers
from traindx.analysis.program.training.operations import Operation, operation_of
from traindx.analysis.program.training.phases import phase_word

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MODES = (Do.TRAIN_MODE, Do.EVAL_MODE)
DROPOUTS = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                      "feature_alpha_dropout"})  # fmt: skip
ELEMENTS = ("builtins.next", "operator.getitem")


def reads_mode(value: Value | None) -> bool:
    """Tell whether a value was computed from the mode of a model: `self.training`."""
    return value is not None and any(
        isinstance(v, ModeRead) or (isinstance(v, Part) and v.key == "training")
        for v in origins(value, 200)
    )


def mode_dependent(story: Story, model: Value | None) -> list[str]:
    """Return what in a model does something else in evaluation mode: layers and functions."""
    functions = story.recall(_mode_dependent_functions).get(id(model), set())
    return sorted({*mode_dependent_layers(model), *functions})


def _mode_dependent_functions(story: Story) -> dict[int, set[str]]:
    """The functions in the forward pass of each model which its mode is given to."""
    found: dict[int, set[str]] = {}
    for event in story.events:
        operation = operation_of(event.result) if event.within else None
        is_random = operation is not None and operation.name in (*DROPOUTS, "batch_norm")
        if operation is not None and is_random and reads_mode(operation.argument("training")):
            for model in event.within:
                found.setdefault(id(model), set()).add(operation.name)
    return found


def last_mode(story: Story, model: Value | None, before: ProgramEvent) -> Deed | None:
    """Return what set the mode of a model last before an event."""
    found = None
    for deed in story.does(*MODES):
        if deed.event.order >= before.order:
            break
        if deed.subject is not None and model is not None and _covers(story, deed.subject, model):
            found = deed
    return found


def _covers(story: Story, owner: Value, model: Value) -> bool:
    """Tell whether a mode that is set on one value is set on another: it is it, or inside."""
    held = [o.bound if isinstance(o, SuperValue) else o for o in options_of(owner)]
    return any(story.has_inside(o, model) for o in held)


def is_mode_sure(story: Story, model: Value, at: ProgramEvent) -> bool:
    """Tell whether nothing out of sight can have set the mode of a model by the time of an event.

    Out of sight are functions that are handed the model, and a mode that is set on the members of
    something whose members are not known.
    """
    if not is_made_in_sight(model) or story.escapes(model, before=at) is not Answer.NO:
        return False
    earlier = (d for d in story.does(*MODES) if d.event.order < at.order)
    apart = [
        d
        for d in earlier
        if d.subject is not None
        and any(isinstance(o, Result) and o.maker in ELEMENTS for o in options_of(d.subject))
    ]
    if not all(map(_is_of_norms, apart)):
        return False
    return not apart or any("Norm" not in layer for layer in mode_dependent(story, model))


def _is_of_norms(setting: Deed) -> bool:
    """Tell whether a mode is set on layers that are tested to be normalisation."""
    tests = (g.true_test for g in setting.event.guards)
    return any(
        isinstance(t, Result) and t.maker == "builtins.isinstance" and t.args[0] is setting.subject
        and all("Norm" in n for w in t.args[1:] for n in _class_names(w))
        for t in tests
    )  # fmt: skip


def _class_names(wanted: Value) -> list[str]:
    classes = wanted.members if isinstance(wanted, Items) else [wanted]
    return [c.name if isinstance(c, External) else "" for c in classes]


def is_made_in_sight(model: Value) -> bool:
    """Tell whether the program makes a model itself: nobody else has set its mode before."""
    if isinstance(model, Instance):
        return model.site is not None and model.site.node is not model.cls.node
    return isinstance(model, Result) and not isinstance(model.receiver, Unknown)


def may_be_evaluating(mode: Value | None) -> bool:
    """Tell whether a mode is evaluation, on some path at least."""
    return mode is not None and any(constant(o) is False for o in options_of(mode))


def varies(guard: Guard) -> bool:
    """Tell whether a condition is met in some turns of a loop only: `step % 100 == 0`."""
    return guard.test is not None and any(
        isinstance(v, Result) and (v.maker == "builtins.next" or v.maker.startswith("operator.i"))
        for v in origins(guard.test, 200)
    )


def excludes(first: ProgramEvent, second: ProgramEvent) -> bool:
    """Tell whether two events stand on different sides of one condition."""
    return any(
        a.test is b.test and a.test is not None and a.holds is not b.holds
        for a in first.guards
        for b in second.guards
    )


# words of classes and functions in which random noise is part of the method
NOISE = frozenset(
    {"mc", "monte", "carlo", "bayes", "bayesian", "uncertainty", "stochastic", "ensemble", "noise",
     "noisy", "augment", "augmentation", "corrupt", "corruption", "mask", "perturb", "perturbation",
     "sample", "sampler", "sampling", "always", "mcdropout", "denoising", "masked", "masking"}
)  # fmt: skip


def is_noise(event: ProgramEvent) -> bool:
    """Tell whether the names around an event say that randomness is meant there."""
    around = [v.cls.node.name for v in event.within if isinstance(v, Instance)]
    around.append(event.function_name)
    return any(words_of(name) & NOISE for name in around)


def active_dropouts(story: Story) -> Iterator[tuple[ProgramEvent, Operation]]:
    """Yield dropout that drops while its model is in evaluation mode, or whatever its mode is.

    The second is for passes of which the mode is not known: nothing in sight makes the model.
    """
    for event in story.events:
        is_own = event.result is not None and event.result.site is event.site
        operation = operation_of(event.result) if event.within and is_own else None
        if operation is None or event.pass_is_training is Answer.YES or event.is_own:
            continue
        if is_noise(event) or not _is_evaluated(event):
            continue
        if _drops(event, operation) and not any(reads_mode(g.test) for g in event.guards):
            yield event, operation


def _drops(event: ProgramEvent, operation: Operation) -> bool:
    if operation.name == "scaled_dot_product_attention":
        rate = operation.argument("dropout_p")
        return rate is not None and _is_rate(rate)
    if operation.name not in DROPOUTS or not _is_rate(operation.argument("p")):
        return False
    if event.name == "()":
        return event.is_training is Answer.YES and is_made_inside(event)
    mode = operation.argument("training")
    is_spread = "**" in event.kwargs or any(
        isinstance(a, Result) and a.maker == "operator.spread" for a in event.args
    )
    is_always = mode is None or (constant(mode) is True and not isinstance(mode, ModeRead))
    return is_always and not is_spread


def is_made_inside(event: ProgramEvent) -> bool:
    """Tell whether a layer is made in the pass that calls it, so that no mode ever reaches it."""
    layer, model = event.receiver, event.within[-1] if event.within else None
    parts = modules_in(model) if model is not None else []
    return not any(part is layer for part in parts)


def _is_rate(rate: Value | None) -> bool:
    """Tell whether a rate is not zero, nor made from the mode, nor computed out of sight."""
    if rate is None:
        return True
    options = options_of(rate)
    return not reads_mode(rate) and not any(
        constant(o) == 0 or (isinstance(o, Result) and not o.maker.startswith("operator."))
        for o in options
    )


def sets_own_mode(model: Value) -> bool:
    """Tell whether a class has a `train` or `eval` of its own, which may change more than modes."""
    return isinstance(model, Instance) and any(
        getattr(n, "name", "") in ("train", "eval")
        for cls in model.cls.lineage()
        for n in cls.node.body
    )


def overwritten_modes(story: Story) -> Iterator[tuple[Assigned, Deed]]:
    """Yield where `self.training` is made something else than a mode, and where a mode is set.

    torch keeps the mode under that name: what stood there is lost, in every module inside too.
    """
    setting = [d for d in story.does(*MODES) if not isinstance(d.subject, SuperValue)]
    for kept in assigned(story.index.stores):
        if kept.name == "training" and _is_no_mode(kept.value):
            found = (d for d in setting if kept.model in modules_in(d.subject or kept.value))
            deed = next(found, None)
            if deed is not None:
                yield kept, deed


def _is_no_mode(value: Value) -> bool:
    """Tell whether a value is certainly neither true nor false: settings, a text, a list."""
    if isinstance(value, Known):
        return isinstance(value.value, (str, float)) or type(value.value) is int
    is_named = isinstance(value, Result) and value.maker.endswith(("Namespace", "EasyDict"))
    return is_named or isinstance(value, (Instance, Items, Table))


def _is_evaluated(event: ProgramEvent) -> bool:
    """Tell whether a pass evaluates: it does, or it is not only for training by its name."""
    if event.pass_is_training is Answer.NO:
        return True
    return phase_word(event.function_name) != "train" and not any(
        sets_own_mode(v) for v in event.within
    )
