"""Gradient scalers of mixed precision: which one scales a loss, and whether it is on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.library import LISTINGS
from traindx.analysis.program.execution.values import (
    Answer,
    Known,
    Result,
    Unknown,
    Value,
    constant,
    depends_on,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import CLIPS, Deed, Do, is_gradient, model_of
from traindx.analysis.program.training.gradient_hooks import bounding_hooks
from traindx.analysis.program.training.gradients import history, runs_weights
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.ownership import owns
from traindx.analysis.program.training.settings import constants_of
from traindx.analysis.program.training.updates import (
    COMPUTES,
    Update,
    count_of_turns,
    excludes,
    happens_with,
    is_handed_on,
    is_one_turn,
    updates,
    writes_gradients,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MAKERS = ("GradScaler", "ShardedGradScaler")
LARGE = 2.0**14  # gradients at a scale like that overflow sooner or later
FINITE = frozenset({"isfinite", "isnan", "isinf"})
UNSCALES = (".get_scale", ".unscale_gradients")  # asked for by a limit that is scaled as well


def scaler_of(loss: Value | None) -> Value | None:
    """Return what scaled a value: `scaler` of `scaler.scale(loss)`."""
    return loss.receiver if isinstance(loss, Result) and loss.maker == ".scale" else None


def unscaled(loss: Value) -> Value:
    """Return a loss as it was before a scaler scaled it."""
    if isinstance(loss, Result) and loss.maker == ".scale" and loss.args:
        return loss.args[0]
    return loss


def is_gradient_scaler(story: Story, value: Value | None) -> bool:
    """Tell whether a value is torch's gradient scaler, switched on, or one from out of sight."""
    if value is None:
        return False
    found = [o for o in options_of(value) if not isinstance(o, Known)]
    made = [o for o in found if isinstance(o, Result)]
    if any(constant(o.kwargs.get("enabled")) is False for o in made):
        return False
    if made:
        return any(_maker(o) in MAKERS for o in made)
    return bool(found) and story.kind_of(value).kind is Kind.SCALER


def _maker(made: Result) -> str:
    """The name of what makes a value; also of a class that nothing in sight defines."""
    name = made.receiver.name if isinstance(made.receiver, Unknown) else made.maker
    return name.rsplit(".", 1)[-1]


def is_scaled(story: Story, backward: Deed) -> bool:
    """Tell whether a backward pass starts from a loss that a gradient scaler scaled."""
    return is_gradient_scaler(story, scaler_of(backward.subject))


def scales_nothing(story: Story, scaler: Value | None) -> bool:
    """Tell whether a scaler of torch's, made in sight, is never asked to scale anything."""
    if not isinstance(scaler, Result) or not is_gradient_scaler(story, scaler):
        return False
    asked = [e.receiver for e in story.index.named(".scale") if e.receiver is not None]
    is_asked = any(o is scaler for receiver in asked for o in options_of(receiver))
    return not is_asked and story.escapes(scaler) is Answer.NO


def is_scaled_by_engine(story: Story, backward: Deed) -> bool:
    """Tell whether a framework scales the loss of a backward pass: it may run in float16."""
    engine = backward.through
    if not isinstance(engine, Result) or story.kind_of(engine).kind is not Kind.ENGINE:
        return False
    given = engine.kwargs.get("mixed_precision") or engine.kwargs.get("precision")
    return any(text in ("fp16", "16-mixed") for text in constants_of(story, given))


def knows_scaling(story: Story) -> bool:
    """Tell whether a program has a gradient scaler, or a framework that may bring one."""
    return story.recall(_knows_scaling)


def _knows_scaling(story: Story) -> bool:
    for event in story.events:
        if event.name.split(".", 1)[0] in ("apex", "deepspeed", "accelerate", "lightning"):
            return True
        values = (event.receiver, event.result, *event.args, *event.kwargs.values())
        if any(story.kind_of(v).kind in (Kind.SCALER, Kind.ENGINE) for v in values):
            return True
    return False


@dataclass(frozen=True, eq=False)
class MissedUpdate:
    """A step through a scaler whose scale does not adapt before the next one."""

    step: Deed
    late: Deed | None  # an update that comes less often than the step
    fixed: ProgramEvent | None = None  # what gives every step the same scale, updated or not


def missed_updates(story: Story) -> Iterator[MissedUpdate]:
    """Yield steps in a loop, through a scaler of their loss, without an update for each."""
    for step in story.does(Do.STEP):
        scaler = step.through
        if scaler is None or not step.event.turns or not is_gradient_scaler(story, scaler):
            continue
        scales = any(scaler_of(d.subject) is scaler for d in story.does(Do.BACKWARD))
        if not scales or is_handed_on(story, story.events, scaler):
            continue
        known = [d for d in story.does(Do.SCALER_UPDATE) if d.subject is scaler]
        if all(_is_rarer(story, update, step) for update in known):
            yield MissedUpdate(step, known[0] if known else None)
        elif all(_is_for_finite_only(update) for update in known):
            yield MissedUpdate(step, known[0])
        else:
            fixed = _made_anew(story, scaler, step) or _fixed_scale(story, known, step)
            if fixed is not None:
                yield MissedUpdate(step, None, fixed)


def _is_for_finite_only(update: Deed) -> bool:
    """Tell whether a scaler is left as it is where gradients overflow, when it should back off."""
    for guard in update.event.guards:
        test = list(origins(guard.test, 60)) if guard.test is not None else []
        names = {o.name for o in map(operation_of, test) if o is not None}
        makers = [v.maker.rsplit(".", 1)[-1] for v in test if isinstance(v, Result)]
        is_finite = names & FINITE or FINITE & set(makers)
        if is_finite and (CLIPS & set(makers) or any(map(is_gradient, test))):
            return True
    return False


def _made_anew(story: Story, scaler: Value, step: Deed) -> ProgramEvent | None:
    """Return where a scaler is made in the same turn of a loop in which it steps."""
    made = story.giver_of(scaler)
    is_inside = made is not None and made.turns == step.event.turns
    is_restored = any(d.subject is scaler for d in story.does(Do.LOAD_STATE))
    is_last = not step.event.turns[-1].loop.is_whole
    return made if is_inside and is_last and not is_restored else None


def _fixed_scale(story: Story, known: list[Deed], step: Deed) -> ProgramEvent | None:
    """Return an update that sets the scale to one large number at every step."""
    for update in known:
        given = constants_of(story, update.event.argument("new_scale", 0))
        is_large = bool(given) and all(isinstance(g, (int, float)) and g >= LARGE for g in given)
        if not is_large or not happens_with(update.event, step.event):
            return None
    return known[0].event if known else None


def _is_rarer(story: Story, update: Deed, step: Deed) -> bool:
    """Tell whether an optimizer steps several times for one update."""
    loop, optimizer = step.event.turns[-1].loop, step.subject
    if optimizer is None or story.kind_of(optimizer).kind is not Kind.OPTIMIZER:
        return False
    if all(run.site.node is not loop.site.node for run in update.event.loops):
        is_one = loop.over is None or not depends_on(loop.over, optimizer)
        return is_one and not loop.is_whole
    is_some = count_of_turns(story, update.event) is not None
    return is_some and not happens_with(update.event, step.event)


def _unscaled_backward(update: Update) -> Deed | None:
    """Return the backward pass on a plain loss whose gradients a scaler's step divides."""
    story, scaler, step = update.story, update.step.through, update.step.event
    if scales_nothing(story, scaler):
        return update.backward
    if scaler is None or not is_gradient_scaler(story, scaler):
        return None
    added: list[Deed] = []
    for deed in reversed(story.does(*COMPUTES, Do.STEP, Do.ZERO_GRAD)):
        if deed.event.order >= step.order or excludes(deed.event, step):
            continue
        if deed.do is not Do.BACKWARD or not is_one_turn(deed.event, step):
            break
        added.append(deed)
    scaled = {id(d) for d in added if _is_scaled_somewhere(d, scaler)}
    if not scaled and not (isinstance(scaler, Result) and story.escapes(scaler) is Answer.NO):
        return None  # something out of sight may scale with it
    others = (d for d in added if id(d) not in scaled)
    plain = [d for d in others if _is_plain(update, d) and happens_with(d.event, step)]
    return next(iter(plain), None)


def _is_scaled_somewhere(backward: Deed, scaler: Value) -> bool:
    """Tell whether what a backward pass starts from went through a scaler."""
    loss = backward.subject
    return loss is not None and any(scaler_of(v) is scaler for v in origins(loss, 200))


def _is_plain(update: Update, backward: Deed) -> bool:
    """Tell whether nothing scales a loss that reaches weights of the optimizer."""
    loss, optimizer = backward.subject, update.optimizer
    if loss is None or optimizer is None or backward.through is not None:
        return False
    reached = [v.receiver for v in history(loss) if isinstance(v, Result) and _has_weights(v)]
    is_owned = any(m is not None and owns(optimizer, m) is Answer.YES for m in reached)
    return is_owned and unscaled(loss) is loss


def _has_weights(value: Result) -> bool:
    return value.maker in LISTINGS or (value.maker == "()" and runs_weights(value) is Answer.YES)


def _is_bypassed(update: Update) -> bool:
    """Tell whether an optimizer steps by itself on gradients of a scaled loss."""
    story, step, backward = update.story, update.step, update.backward
    optimizer, scaler = step.subject, scaler_of(backward.subject)
    if optimizer is None or scaler is None or step.through is not None:
        return False
    if not is_scaled(story, backward) or story.kind_of(optimizer).kind is not Kind.OPTIMIZER:
        return False
    if any(d.through is not None and d.subject is optimizer for d in story.does(Do.STEP)):
        return False  # the other way of a condition
    if update.between.does(Do.UNSCALE) and _may_check_gradients(story, step):
        return False
    if any(depends_on(optimizer, o) for o in options_of(scaler)):
        return False
    return not writes_gradients(story, update.between.events)


def _may_check_gradients(story: Story, step: Deed) -> bool:
    """Tell whether a step may be for finite gradients only: on a condition that counts no turns."""
    counted = count_of_turns(story, step.event)
    tests = [g.test for g in step.event.guards]
    return any(t is None or counted is None or not depends_on(t, counted) for t in tests)


@dataclass(frozen=True, eq=False)
class BypassedScaler:
    """An update whose loss and step do not both go through one scaler."""

    update: Update
    plain: Deed | None  # the backward pass that lacks the scale; else the step does


def bypassed_scalers(story: Story) -> Iterator[BypassedScaler]:
    """Yield the updates with a scaled loss and a plain step, or the other way round."""
    for update in updates(story):
        plain = _unscaled_backward(update)
        if plain is not None or _is_bypassed(update):
            yield BypassedScaler(update, plain)


@dataclass(frozen=True, eq=False)
class ScaledClip:
    """A clip of gradients that still carry the scale of their loss, and its update."""

    update: Update
    clip: Deed
    is_hook: bool = False  # done by autograd, within the backward pass


def scaled_clips(story: Story) -> Iterator[ScaledClip]:
    """Yield the first clip of each update before its gradients are unscaled."""
    for update in updates(story):
        clip = _scaled_clip(update)
        hook = _scaled_hook(update) if clip is None else None
        if clip is not None:
            yield ScaledClip(update, clip)
        elif hook is not None:
            yield ScaledClip(update, hook, is_hook=True)


def _scaled_hook(update: Update) -> Deed | None:
    """Return a hook that bounds gradients as backward computes them, when nothing can unscale."""
    story, scaler, optimizer = update.story, update.step.through, update.optimizer
    if scaler is None or optimizer is None or scaler_of(update.backward.subject) is not scaler:
        return None
    if not is_gradient_scaler(story, scaler):
        return None
    for hook in story.recall(bounding_hooks):
        model = model_of(hook.subject)
        is_set = hook.event.order < update.backward.event.order
        if is_set and model is not None and owns(optimizer, model) is Answer.YES:
            return hook
    return None


def _scaled_clip(update: Update) -> Deed | None:
    """Return the first clip of gradients that still carry the scale of their loss."""
    story, backward, scaler = update.story, update.backward, update.step.through
    is_by_scaler = scaler is not None and scaler_of(backward.subject) is scaler
    if is_by_scaler and not is_gradient_scaler(story, scaler):
        return None
    if not is_by_scaler and not is_scaled_by_engine(story, backward):
        return None
    if any(e.name in UNSCALES for e in update.between.events):
        return None
    is_other = False
    for deed in update.between.does(Do.UNSCALE, Do.CLIP):
        if deed.event.name.startswith(".clip_grad"):
            continue  # a framework's, which unscales
        if deed.do is Do.CLIP and (not is_other or _clips_own(update, deed)):
            return deed
        if deed.do is Do.UNSCALE:
            is_other = _is_anothers(story, deed, update.optimizer)
            if not is_other:
                return None
    return None


def _is_anothers(story: Story, unscale: Deed, optimizer: Value | None) -> bool:
    """Tell whether the gradients that are unscaled are another optimizer's, for certain."""
    kinds = [story.kind_of(v).kind for v in (unscale.subject, optimizer)]
    made = isinstance(unscale.subject, Result) and isinstance(optimizer, Result)
    return made and unscale.subject is not optimizer and kinds == [Kind.OPTIMIZER] * 2


def _clips_own(update: Update, clip: Deed) -> bool:
    model = model_of(clip.subject)
    return model is not None and update.optimizer is not None and (
        owns(update.optimizer, model) is Answer.YES
    )  # fmt: skip
