"""Learning-rate schedules: how long they are, in which unit, and how often they are stepped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.library import FACTORS
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Known,
    Method,
    Result,
    Value,
    constant,
    is_same,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.kinds import Kind, names_of
from traindx.analysis.program.training.metric_directions import Metric, metric_of
from traindx.analysis.program.training.ownership import holders, parameters_given
from traindx.analysis.program.training.phases import Loop, Unit, loop_of, loops_of
from traindx.analysis.program.training.settings import constants_of
from traindx.analysis.program.training.updates import period_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

# the argument that says how long a schedule is, by keyword and position
LENGTHS: dict[str, tuple[tuple[str, int], ...]] = {
    "CosineAnnealingLR": (("T_max", 1),),
    "CosineAnnealingWarmRestarts": (("T_0", 1),),
    "StepLR": (("step_size", 1),),
    "SequentialLR": (("milestones", 2),),
    "MultiStepLR": (("milestones", 1),),
    "LinearLR": (("total_iters", 3),),
    "PolynomialLR": (("total_iters", 1),),
    "ConstantLR": (("total_iters", 2),),
    "OneCycleLR": (("total_steps", 2), ("steps_per_epoch", 4)),
    "CyclicLR": (("step_size_up", 3),),
    "get_linear_schedule_with_warmup": (("num_training_steps", 2),),
    "get_cosine_schedule_with_warmup": (("num_training_steps", 2),),
    "get_polynomial_decay_schedule_with_warmup": (("num_training_steps", 2),),
    "get_scheduler": (("num_training_steps", 3),),
}
COMBINED = frozenset({"SequentialLR", "ChainedScheduler"})
GAMMAS = {"StepLR": 2, "ExponentialLR": 1}  # by the position of the factor
EPOCH_WORD = re.compile(r"epoch", re.IGNORECASE)
# a number of steps; the size of a step, or its name, counts none
STEPS_WORD = re.compile(r"(?:^|_)(?:steps|iters|iterations|batches|updates)(?:$|_per_epoch$)", re.I)
# the steps of the schedule itself, whatever they are: `lr_decay_steps`
OWN_WORD = re.compile(r"(?:^|_)(?:lr|decay|sched\w*|rate|anneal\w*)_", re.I)
OTHER_WORD = re.compile(r"step|iter|batch|update|per_", re.IGNORECASE)
NUMBERS = frozenset({"operator.div", "operator.floordiv", "operator.sub", "operator.lt",
                     "operator.le", "operator.gt", "operator.ge", "operator.mod"})  # fmt: skip


SCALING = frozenset(
    {"StepLR", "MultiStepLR", "ExponentialLR", "LambdaLR", "MultiplicativeLR", "ConstantLR",
     "LinearLR", "PolynomialLR", "ReduceLROnPlateau", "CosineAnnealingLR",
     "CosineAnnealingWarmRestarts"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Schedule:
    """A learning-rate schedule that a story makes."""

    story: Story
    made: Result

    @property
    def kind(self) -> str:
        return self.made.maker.rsplit(".", 1)[-1]

    @property
    def optimizer(self) -> Value | None:
        return self._argument("optimizer", 0)

    @property
    def only_scales(self) -> bool:
        """Whether it only multiplies the rate: a rate of zero stays zero."""
        is_torch = self.made.maker.startswith("torch.optim.lr_scheduler.")
        if is_torch and self.kind in COMBINED:
            given = self._argument("schedulers", 0 if self.kind == "ChainedScheduler" else 1)
            parts = given.members if isinstance(given, Items) and given.is_whole else []
            found = [p for p in parts if isinstance(p, Result)]
            is_known = bool(parts) and len(found) == len(parts)
            return is_known and all(Schedule(self.story, p).only_scales for p in found)
        floor = self._argument("eta_min", 2) if self.kind == "CosineAnnealingLR" else None
        is_free = floor is None and "eta_min" not in self.made.kwargs
        return is_torch and self.kind in SCALING and is_free

    def _argument(self, name: str, position: int) -> Value | None:
        if name in self.made.kwargs:
            return self.made.kwargs[name]
        return self.made.args[position] if position < len(self.made.args) else None

    @cached_property
    def lengths(self) -> list[Value]:
        """The numbers that say how long it is; of a function, those its argument is held to."""
        found = [self._argument(*place) for place in LENGTHS.get(self.kind, ())]
        if self.kind == "LambdaLR":
            return list(self._inside())
        given = [v for v in found if v is not None]
        return [m for v in given for m in (v.members if isinstance(v, Items) else [v])]

    def _inside(self) -> Iterator[Value]:
        """What the function of a schedule divides its argument by, or compares it with."""
        node = None if self.made.site is None else self.made.site.node
        for event in self.story.events:
            if event.name in NUMBERS and any(site.node is node for site in event.callers):
                own, other = event.args[0], event.args[1]
                if any(v.names and not v.inputs for v in origins(own, 50)):
                    yield other

    @cached_property
    def steps(self) -> list[Deed]:
        """Where it is stepped without an argument, each place once."""
        found: dict[object, Deed] = {}
        for deed in self.story.does(Do.SCHEDULER_STEP):
            is_own = deed.subject is not None and any(
                o is self.made for o in options_of(deed.subject)
            )
            if is_own and not deed.event.args and not deed.event.kwargs:
                found.setdefault(deed.event.node, deed)
        return list(found.values())

    @cached_property
    def updates(self) -> list[Deed]:
        """The steps of the optimizer whose rate it sets."""
        return [d for d in self.story.does(Do.STEP) if d.subject is self.optimizer]

    @cached_property
    def unit(self) -> Unit | None:
        """What its length counts: epochs or batches; None where that is not known."""
        units = {self._unit_of(length) for length in self.lengths}
        return units.pop() if len(units) == 1 else None

    def _unit_of(self, length: Value) -> Unit | None:
        leaves = list(_leaves(length))
        if any(isinstance(v, Result) and v.maker == "builtins.len" for v in leaves):
            return Unit.BATCHES
        named = [v for v in leaves if not isinstance(v, Known) or v.names or v is length]
        bounds = {id(v): x.unit for x in self._loops for b in _bounds(x) for v in _leaves(b)}
        units = {bounds.get(id(v)) or _unit_by_name(v) for v in named}
        known = units.pop() if len(units) == 1 else None
        if known is None and isinstance(constant(length), int):
            return self._unit_of_number(length)
        return known if known in (Unit.EPOCHS, Unit.BATCHES) else None

    def _unit_of_number(self, length: Value) -> Unit | None:
        """A bare number that is the number of epochs; strides may be equal by chance."""
        number = constant(length)
        for loop in self._loops:
            bound = count_of(loop)
            if loop.unit is not Unit.EPOCHS or bound is None or not isinstance(number, int):
                continue
            if number == bound and self.kind not in ("StepLR", "MultiStepLR"):
                return Unit.EPOCHS
            if self.kind == "MultiStepLR" and 1 < number <= bound:
                return Unit.EPOCHS  # as batches, all milestones lay in the first few
            if number > 2 * bound and self.kind in ("OneCycleLR", "CyclicLR"):
                return Unit.BATCHES
        return None

    @cached_property
    def _loops(self) -> list[Loop]:
        around = {x.site.node for d in self.updates for x in d.event.loops}
        return [x for x in loops_of(self.story) if x.run.site.node in around]

    @cached_property
    def ends_at(self) -> int | None:
        """The number of steps after which its factor is zero for good, where that is known."""
        table = self.made.fields.get(FACTORS)
        found = {} if table is None else {k: constant(v) for k, v in table.fields.items()}
        if not found or not all(isinstance(v, (int, float)) for v in found.values()):
            return None
        zero = [k for k, v in found.items() if v == 0]
        last = [k for k, v in found.items() if v != 0]
        return min((k for k in zero if all(k > x for x in last)), default=None)

    @property
    def is_over_after_an_epoch(self) -> bool:
        """Whether it ends, and its length is the number of batches of one pass over a loader."""
        is_final = self.kind in FINAL and bool(self.lengths)
        if self.kind == "LinearLR":  # else it warms up
            is_final = is_final and constant(self._argument("end_factor", 2)) == 0
        if self.kind == "get_scheduler":
            is_final = is_final and constant(self._argument("name", 0)) in ENDING
        if self.kind == "OneCycleLR":  # else of a number of epochs
            is_final = is_final and self._argument("total_steps", 2) is not None
        return is_final and all(_is_one_pass(self.story, v) for v in self.lengths)

    def steps_to(self, share: float) -> float:
        """The number of steps after which it has multiplied the rate by a share."""
        if self.kind not in GAMMAS:
            return math.inf
        given = self._argument("gamma", GAMMAS[self.kind])
        gamma = 0.1 if given is None and self.kind == "StepLR" else constant(given)
        stride = constant(self._argument("step_size", 1)) if self.kind == "StepLR" else 1
        if not isinstance(gamma, float) or not isinstance(stride, int) or not 0 < gamma < 1:
            return math.inf
        return stride * math.log(share) / math.log(gamma)

    @cached_property
    def replaced(self) -> Value | None:
        """The optimizer that is stepped in the place of the one whose rate this schedule sets."""
        own = self.optimizer
        if own is None or not self.steps or self.updates or self.story.escapes(own) is Answer.YES:
            return None
        held = {id(model) for model, _ in holders(parameters_given(own))}
        for deed in self.story.does(Do.STEP):
            other = None if deed.subject is None else parameters_given(deed.subject)
            if held & {id(model) for model, _ in holders(other)}:
                return deed.subject
        return None

    @cached_property
    def made_anew(self) -> Deed | None:
        """Its one step in each turn of a loop that makes it again, of an optimizer that stays."""
        made = self._making(self.made)
        optimizer = None if self.optimizer is None else self._making(self.optimizer)
        if made is None or optimizer is None or len(self.steps) != 1:
            return None
        step = self.steps[0]
        is_once = [x.site.node for x in rounds_of(step.event)] == [
            x.site.node for x in rounds_of(made) if not x.is_whole
        ]
        is_inside = bool(made.loops) and len(optimizer.loops) < len(made.loops)
        is_loaded = any(e.name == ".load_state_dict" for e in self.story.index.on(self.made))
        return step if is_once and is_inside and not is_loaded else None

    def _making(self, value: Value) -> ProgramEvent | None:
        return self.story.giver_of(value)

    @cached_property
    def unwaited(self) -> Deed | None:
        """Its step at every batch, where its length counts updates of several batches."""
        for update in self.updates:
            period = period_of(self.story, update.event)
            parts = [v for length in self.lengths for v in origins(length, 50)]
            divisors = [v.args[1] for v in parts if isinstance(v, Result) and v.maker in DIVIDES]
            if period is None or not any(is_same_number(d, period) for d in divisors):
                continue
            for step in self.steps:
                if step.event.loops == update.event.loops and not step.event.guards:
                    return step
        return None

    @property
    def watched(self) -> tuple[Deed, Metric] | None:
        """What a schedule that waits for a plateau is told, and whether it is a loss or a score."""
        is_plateau = self.kind == "ReduceLROnPlateau"
        for deed in self.story.does(Do.SCHEDULER_STEP) if is_plateau else ():
            given = deed.event.argument("metrics", 0)
            known = None if given is None else metric_of(given)
            if deed.subject is self.made and known is not None:
                return deed, known
        return None

    @property
    def wants(self) -> Metric | None:
        """What it takes for an improvement: a loss that falls, or a score that rises."""
        mode = self._argument("mode", 1)
        given = "min" if mode is None else constant(mode)
        return {"min": Metric.LOSS, "max": Metric.SCORE}.get(str(given))


# what stays at its end once it is there, or fails beyond it
FINAL = frozenset(
    {"get_linear_schedule_with_warmup", "get_polynomial_decay_schedule_with_warmup",
     "get_cosine_schedule_with_warmup", "get_scheduler", "LinearLR", "PolynomialLR", "OneCycleLR"}
)  # fmt: skip
ENDING = ("linear", "cosine", "polynomial")
ROUNDS = frozenset({"builtins.int", "builtins.round", "math.ceil", "math.floor", "builtins.max"})


def _is_one_pass(story: Story, length: Value, depth: int = 8) -> bool:
    """Tell whether a number is that of the batches of a loader, perhaps by updates of several."""
    if not isinstance(length, Result) or not length.args or depth == 0:
        return False
    if length.maker == "builtins.len":
        return story.kind_of(length.args[0]).kind is Kind.LOADER
    if length.maker in ROUNDS or length.maker in DIVIDES:
        made = [v for v in length.args if isinstance(v, Result)][:1]
        return bool(made) and _is_one_pass(story, made[0], depth - 1)
    return False


DIVIDES = frozenset({"operator.floordiv", "operator.div", "operator.truediv"})


def is_same_number(one: Value, other: Value) -> bool:
    """Tell whether two values are one number, by identity or as one setting."""
    return one is other or is_same(one, other)


def schedules_of(story: Story) -> list[Schedule]:
    """Return the schedules that a story makes."""
    made = (v for v in story.made(Kind.SCHEDULER) if isinstance(v, Result))
    return [Schedule(story, v) for v in made]


def pace_of(story: Story, event: ProgramEvent) -> Unit | None:
    """Return what the innermost loop around an event counts."""
    around = rounds_of(event)
    return loop_of(story, around[-1]).unit if around else None


def rounds_of(event: ProgramEvent) -> tuple[LoopRun, ...]:
    """Return the loops around an event that count; one over callbacks or phases does not."""
    return tuple(loop for loop in event.loops if not loop.is_whole) or event.loops


def count_of(loop: Loop) -> int | None:
    """Return how many turns a loop has, where the source says it."""
    over = loop.over
    if not isinstance(over, Result) or over.maker != "builtins.range":
        return None
    found = [constants_of(loop.story, a) for a in over.args]
    numbers = [n for (n, *others) in (f for f in found if f) if isinstance(n, int) and not others]
    if not numbers or len(numbers) != len(over.args) or numbers[2:] == [0]:
        return None
    return len(range(*numbers))


def _bounds(loop: Loop) -> list[Value]:
    """What says how many turns a loop has."""
    over = loop.over
    if isinstance(over, Result) and over.maker in ("builtins.range", "tqdm.trange") and over.args:
        return [over.args[-1] if len(over.args) < 3 else over.args[1]]
    return []


def _leaves(value: Value) -> Iterator[Value]:
    """The named numbers, lengths and literals that a number was computed from."""
    pending = [value]
    while pending:
        found = pending.pop()
        is_made = isinstance(found, Result) and found.maker != "builtins.len"
        is_literal = isinstance(found, Known) and not found.names
        if (is_made or is_literal) and found.inputs:
            pending.extend(found.inputs)
        else:
            yield found


def _unit_by_name(value: Value) -> Unit | None:
    """The unit that the names of a number speak of; None where none or both do."""
    words = [value.name] if isinstance(value, Method) else names_of(value)
    if any(STEPS_WORD.search(w) and not OWN_WORD.search(w) for w in words):
        return Unit.BATCHES
    is_epochs = any(EPOCH_WORD.search(w) for w in words)
    is_other = any(OTHER_WORD.search(w) for w in words)
    return Unit.EPOCHS if is_epochs and not is_other else None


def idle_schedules(program: Program) -> Iterator[Result]:
    """Yield the schedules that are made and that nothing steps, in sight or out of it."""
    if any(story.execution.gave_up for story in program.stories):
        return
    seen = _stepped(program)
    for story in program.stories:
        for made in story.made(Kind.SCHEDULER):
            if not isinstance(made, Result) or made.site is None or made.site.node in seen:
                continue
            if _is_idle(story, made):
                seen.add(made.site.node)
                yield made


def _stepped(program: Program) -> set[object]:
    """Where the schedules are made that any program in sight steps, or keeps in another one."""
    steps = [d.subject for s in program.stories for d in s.does(Do.SCHEDULER_STEP)]
    # timm's has `step_update` beside `step`
    steps += [e.receiver for s in program.stories for e in s.events if e.name.startswith(".step_")]
    return {
        option.site.node
        for stepped in steps
        if stepped is not None
        for subject in options_of(stepped)
        for option in (subject, *subject.inputs, *(m for v in subject.inputs for m in v.inputs))
        if option.site is not None
    }


def _is_idle(story: Story, made: Result) -> bool:
    """Tell whether a schedule stays in sight, in a program that steps optimizers."""
    if story.escapes(made) is not Answer.NO or "SequentialLR" in made.maker:
        return False
    uses = story.uses(made)
    return not any(e.name in (".prepare", ".step") or _is_kept(e.name) for e in uses)


def _is_kept(name: str) -> bool:
    return name.endswith(("SequentialLR", "ChainedScheduler", ".append", ".register"))
