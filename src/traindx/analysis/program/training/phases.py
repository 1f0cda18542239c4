"""The loops of a program: what they count, and whether they train or evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Guard, LoopRun, ProgramEvent
from traindx.analysis.program.execution.iteration import wrapped
from traindx.analysis.program.execution.values import (
    Answer,
    Generator,
    Instance,
    Items,
    Part,
    Result,
    Site,
    Value,
    constant,
    depends_on,
    options_of,
    origins,
)
from traindx.analysis.program.syntax import Function
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.gradients import history, is_cut
from traindx.analysis.program.training.kinds import Kind, names_of, words_of
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

LEARNS = frozenset({Do.BACKWARD, Do.STEP, Do.GRAD, Do.MANUAL_UPDATE, Do.UNSCALE})
WORDS = {
    "train": {"train", "training", "trn", "trainset", "trainloader", "traindata", "tr", "fit"},
    "validation": {"va", "val", "valid", "validation", "dev", "eval", "evaluation", "valloader",
                   "valset", "validate", "evaluate", "validloader"},
    "test": {"te", "test", "testing", "holdout", "heldout", "testloader", "testset"},
}  # fmt: skip


class Unit(Enum):
    """What a loop counts."""

    BATCHES = "batches"
    EPOCHS = "epochs"
    STEPS = "steps"  # each takes a batch from somewhere
    OTHER = "other"


class Phase(Enum):
    """What a loop over data is for."""

    TRAINING = "training"
    HELD_OUT = "held-out"
    UNKNOWN = "unknown"


def phase_word(name: str) -> str:
    """Return the split that the words of a name speak of; empty where none or several do."""
    words = words_of(name)
    found = [phase for phase, known in WORDS.items() if words & known]
    return found[0] if len(found) == 1 else ""


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop statement of a program, with all that is done in it, in every turn.

    `is_apart`: only what is done on one occasion, where the program comes to the statement on
    several: a function that is called once to train and once to evaluate.
    """

    story: Story
    run: LoopRun
    is_apart: bool = False

    def _is_same(self, run: LoopRun) -> bool:
        is_same = run.site.node is self.run.site.node
        return is_same and (not self.is_apart or run.occasion == self.run.occasion)

    @cached_property
    def events(self) -> tuple[ProgramEvent, ...]:
        """Everything that happens inside, in order."""
        inside = self.story.by_loop.get(self.run.site.node, ())
        if not self.is_apart:
            return tuple(inside)
        return tuple(e for e in inside if any(map(self._is_same, e.loops)))

    @cached_property
    def deeds(self) -> tuple[Deed, ...]:
        """Everything that is done to train inside, in order."""
        inside = self.story.deeds_by_loop.get(self.run.site.node, ())
        if not self.is_apart:
            return tuple(inside)
        return tuple(d for d in inside if any(map(self._is_same, d.event.loops)))

    def does(self, *kinds: Do) -> list[Deed]:
        return [d for d in self.deeds if d.do in kinds]

    def holds(self, deed: Deed) -> bool:
        """Tell whether a deed is done inside."""
        return any(map(self._is_same, deed.event.loops))

    @cached_property
    def entered_under(self) -> tuple[Guard, ...]:
        """The conditions that the loop itself stands under: all that happens in it does."""
        every = [e.guards for e in self.events]
        return tuple(g for g in every[0] if all(g in e for e in every)) if every else ()

    @property
    def over(self) -> Value | None:
        """What it goes over, without progress bars and counters."""
        return None if self.run.over is None else source_of(self.run.over)

    @property
    def function(self) -> Function | None:
        """The function that the loop stands in."""
        return self.run.site.module.function_of(self.run.site.node)

    @cached_property
    def inner(self) -> list[Loop]:
        """The loops inside of it, those of functions that it calls included."""
        node = self.run.site.node
        found: dict[object, LoopRun] = {}
        for event in self.events:
            nodes = [x.site.node for x in event.loops]
            for loop in event.loops[nodes.index(node) + 1 :]:
                found.setdefault(loop.site.node, loop)
        return [loop_of(self.story, run) for run in found.values()]

    @cached_property
    def unit(self) -> Unit:
        """What it counts."""
        if self._takes_batches():
            return Unit.BATCHES
        inside = self.inner
        if any(loop._takes_batches() for loop in inside):
            return Unit.EPOCHS
        if self.does(Do.FORWARD, Do.BACKWARD, Do.STEP):
            return Unit.STEPS
        return Unit.OTHER

    def _takes_batches(self) -> bool:
        """Tell whether each turn gets a batch: from a loader, or of what a model is then given."""
        over = self.over
        if over is None or _is_count(over) or _lists_texts(over):
            return self._draws_batches()
        if self.story.kind_of(over).kind is Kind.LOADER:
            return True
        if isinstance(over, Generator):
            return bool(self.does(Do.FORWARD, Do.BACKWARD))
        passes = self.does(Do.FORWARD)
        return any(_is_fed_by(d.event, over) for d in passes if not d.event.within)

    def _draws_batches(self) -> bool:
        """Tell whether the loop takes the next batch of a loader by hand."""
        own = self.run.site.node
        for event in self.events:
            is_own = bool(event.args) and event.args[0] is self.run.over  # what it goes over
            is_next = event.name in ("builtins.next", ".next", ".__next__") and not is_own
            if is_next and event.loops and event.loops[-1].site.node is own:
                return True
        return False

    @cached_property
    def phase(self) -> Phase:
        """Whether it trains or evaluates: by what it does, then by what it goes over."""
        if self.does(*LEARNS):
            return Phase.TRAINING
        if not self.does(Do.FORWARD):
            return Phase.UNKNOWN
        split = self.split
        if split in ("validation", "test"):
            return Phase.HELD_OUT
        if split == "train":
            return Phase.UNKNOWN
        is_off = all(d.event.gradients is Answer.NO for d in self.does(Do.FORWARD))
        outer = [d for d in self.does(Do.FORWARD) if not d.event.within]
        is_eval = all(_is_to_evaluate(self.story, d) for d in outer or self.does(Do.FORWARD))
        return Phase.HELD_OUT if is_off and is_eval else Phase.UNKNOWN

    @cached_property
    def split(self) -> str:
        """The split that it goes over, by the names of the data or of the function around it."""
        found = {w for v in (self.run.over, self.over) if v is not None for w in splits_of(v)}
        if len(found) == 1:
            return found.pop()
        function = self.function
        return "" if found or function is None else phase_word(function.name)


def _is_to_evaluate(story: Story, forward: Deed) -> bool:
    """Tell whether a pass runs in evaluation mode, or should: `eval()` was the last word on it.

    A model with a `train` of its own may do something else than it is asked to.
    """
    if forward.event.is_training is Answer.NO:
        return True
    asked: dict[object, Deed] = {}
    for deed in story.does(Do.TRAIN_MODE, Do.EVAL_MODE):
        is_own = deed.event.function_name in ("train", "eval")
        if (
            deed.subject is forward.subject
            and not is_own
            and deed.event.order < forward.event.order
        ):
            asked.setdefault((deed.event.node, deed.event.turns), deed)
    return bool(asked) and list(asked.values())[-1].do is Do.EVAL_MODE


def _is_count(over: Value) -> bool:
    return isinstance(over, Result) and over.maker in ("builtins.range", "itertools.count")


def _lists_texts(over: Value) -> bool:
    """`for phase in ("train", "val")`: what is looked up by a name depends on it as well."""
    found = over.members if isinstance(over, Items) else []
    return bool(found) and all(isinstance(constant(v), str) for v in found)


def _is_fed_by(event: ProgramEvent, over: Value) -> bool:
    return any(depends_on(a, over) for a in (*event.args, *event.kwargs.values()))


def source_of(over: Value) -> Value:
    """Return what is gone over, through progress bars, `enumerate`, `iter` and counters."""
    over = wrapped(over)
    while isinstance(over, Result) and over.maker in ("builtins.enumerate", "builtins.zip"):
        counted = [wrapped(a) for a in over.args]
        if over.maker == "builtins.zip":
            counted = _apart_from(_is_count, _apart_from(_is_endless_count, counted))
            if len(counted) > 1:
                return over
        if not counted:
            return over
        over = counted[0]
    return over


def _apart_from(is_count: Callable[[Value], bool], values: list[Value]) -> list[Value]:
    """Return the values that are no counters; all of them where nothing else is left."""
    return [v for v in values if not is_count(v)] or values


def _is_endless_count(over: Value) -> bool:
    return isinstance(over, Result) and over.maker == "itertools.count"


def splits_of(value: Value) -> set[str]:
    """Return the splits that the names of a value, and of what it was made from, speak of."""
    if isinstance(value, Generator):  # `for batch in self.batches("val")`
        asked = [constant(v) for v in (*value.args, *value.kwargs.values())]
        words = {w for text in asked if isinstance(text, str) and (w := phase_word(text))}
        if words:
            return words
    for found in _named(value):
        words = {w for n in names_of(found) if (w := phase_word(n))}
        if words:
            return words
    return set()


def _named(value: Value) -> Iterable[Value]:
    for found in origins(value, 40):
        if isinstance(found, (Result, Part, Instance)) or found.names or found is value:
            yield found


def loops_of(story: Story) -> list[Loop]:
    """Return the loops of a story."""
    return [loop_of(story, run) for run in story.loops]


def loop_of(story: Story, run: LoopRun, *, is_apart: bool = False) -> Loop:
    """Return the loop of a run, the same one whoever asks: what it knows of itself is kept."""
    known = story.recall(_known_loops)
    if (id(run), is_apart) not in known:
        known[id(run), is_apart] = Loop(story, run, is_apart)
    return known[id(run), is_apart]


def _known_loops(story: Story) -> dict[tuple[int, bool], Loop]:
    return {}


def training_loops(story: Story) -> list[Loop]:
    """Return the outermost loops that train."""
    return list(story.recall(_training_loops))


def _training_loops(story: Story) -> list[Loop]:
    found = []
    covered: set[object] = set()
    for loop in loops_of(story):
        if loop.run.site.node in covered or not loop.does(Do.BACKWARD, Do.STEP, Do.ZERO_GRAD):
            continue
        found.append(loop)
        covered |= {inner.run.site.node for inner in loop.inner}
    return found


def is_every_turn(event: ProgramEvent, beside: ProgramEvent) -> bool:
    """Tell whether an event happens whenever another does that stands in the same turn."""
    return all(any(g.site is b.site or g.site.node is b.site.node for b in beside.guards)
               for g in event.guards)  # fmt: skip


def handed_models(story: Story, event: ProgramEvent) -> list[tuple[Value, Value]]:
    """Return the models that a call out of sight is handed, with the modes that they are in.

    What else a model keeps (a size, a setting) is no model, though it was there when a mode was
    set.
    """
    handed = event.handed_modes
    return [(model, mode) for model, mode in handed if story.kind_of(model).kind is Kind.MODEL]


def training_passes(story: Story) -> list[tuple[ProgramEvent, Deed]]:
    """Return the calls in loops that gradients flow back through, each with its backward.

    A call is the forward pass of a model, or one out of sight that is handed a model.
    """
    return list(story.recall(_training_passes))


def _training_passes(story: Story) -> list[tuple[ProgramEvent, Deed]]:
    found: list[tuple[ProgramEvent, Deed]] = []
    passes = {id(d.event) for d in story.does(Do.FORWARD) if not d.event.within}
    calls = [e for e in story.events if e.result is not None and e.loops
             and e.gradients is not Answer.NO
             and (id(e) in passes or (not e.is_own and handed_models(story, e)))]  # fmt: skip
    made = {id(v): e for e in calls for v in _returned(e)}
    for backward in story.does(Do.BACKWARD) if calls else ():
        if backward.subject is None:
            continue
        for value in history(backward.subject):
            if id(value) in made and not is_cut(value):
                found.append((made[id(value)], backward))
    return found


def _returned(call: ProgramEvent) -> Iterator[Value]:
    """Yield what a call returns, of a tuple its members too: `return logits, loss`."""
    for option in [] if call.result is None else options_of(call.result):
        yield option
        if isinstance(option, Items) and option.kind == "tuple" and call.is_own:
            yield from (v for v in option.members if not any(v is a for a in call.args))


@dataclass(frozen=True, eq=False)
class HeldOutPass:
    """Where a model runs on held-out data and learns nothing: a loop, or one pass over all."""

    story: Story
    forward: Deed
    loop: Loop | None
    split: str

    @property
    def form(self) -> str:
        return "pass" if self.loop is None else "loop"

    @property
    def site(self) -> Site:
        """The loop, or the pass."""
        return self.forward.event.site if self.loop is None else self.loop.run.site

    @property
    def deeds(self) -> tuple[Deed, ...]:
        """What is done to train in the loop, or in the function that only evaluates."""
        if self.loop is not None:
            return self.loop.deeds
        return (self.forward,)

    @property
    def passes(self) -> list[Deed]:
        """Every run of this forward pass, in every turn."""
        node = self.forward.event.node
        if self.loop is not None:
            passes = self.loop.does(Do.FORWARD)
        else:
            calls = self.forward.event.callers
            passes = [d for d in self.story.does(Do.FORWARD) if d.event.callers == calls]
        return [d for d in passes if d.event.node is node and not d.event.within]

    @cached_property
    def is_sampled(self) -> bool:
        """Whether one input is run several times in a row, as where dropout samples predictions."""
        turns = self.forward.event.turns
        if not turns or loop_of(self.story, turns[-1].loop).does(*LEARNS):
            return False
        first = self.forward.event
        again = [d.event for d in self.passes if d.event.turns[:-1] == turns[:-1]]
        return any(
            e is not first and len(e.args) == len(first.args) > 0
            and all(a is b for a, b in zip(e.args, first.args, strict=True))
            for e in again
        )  # fmt: skip

    @cached_property
    def learns(self) -> bool:
        """Whether the function that it stands in learns as well."""
        event = self.forward.event
        inside = (d for d in self.story.does(*LEARNS) if d.event.function is event.function)
        return event.function is None or any(True for _ in inside)


def evaluations(story: Story) -> list[HeldOutPass]:
    """Return where a story evaluates a model on held-out data, each place once."""
    return list(story.recall(_evaluations))


def _evaluations(story: Story) -> list[HeldOutPass]:
    found: dict[object, HeldOutPass] = {}
    occasions: dict[object, Loop] = {}
    for forward in story.does(Do.FORWARD):
        event = forward.event
        if event.within or event.node in found:
            continue
        held_out = None
        for run in reversed(event.loops):
            key = (run.site.node, run.occasion)
            loop = occasions.setdefault(key, loop_of(story, run, is_apart=True))
            if loop.phase is Phase.HELD_OUT and loop.unit is not Unit.OTHER:
                held_out = loop
                break
        if held_out is not None:
            found[event.node] = HeldOutPass(story, forward, held_out, held_out.split)
        elif event.gradients is Answer.NO and (
            split := _split_of_inputs(event) or _split_of_uses(story, event.result)
        ):
            found[event.node] = HeldOutPass(story, forward, None, split)
    return list(found.values())


PICKED_LATER = frozenset({"argmax", "softmax", "log_softmax", "sigmoid", "exp", "max", "squeeze"})


def _split_of_uses(story: Story, output: Value | None, depth: int = 3) -> str:
    """The held-out split that an output is only read for: `model(x)[val_mask]`."""
    uses = [] if output is None else story.made_from(output)
    found: set[str] = set()
    for use in uses:
        operation = operation_of(use)
        if operation is not None and operation.name == "getitem" and len(operation.operands) > 1:
            found |= splits_of(operation.operands[1]) or {""}
        elif depth and operation is not None and operation.name in PICKED_LATER:
            found.add(_split_of_uses(story, use, depth - 1))
        else:
            return ""
    return found.pop() if len(found) == 1 and found & {"validation", "test"} else ""


def _split_of_inputs(event: ProgramEvent) -> str:
    """The held-out split that all inputs of a pass come from; empty where one does not."""
    given = [splits_of(v) for v in (*event.args, *event.kwargs.values())]
    words = {w for found in given for w in found}
    return words.pop() if len(words) == 1 and words & {"validation", "test"} else ""
