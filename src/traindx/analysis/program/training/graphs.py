"""The graphs that autograd keeps: in which turn of a loop they were made, and what holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Instance,
    Items,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    depends_on,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.freezing import is_ever_frozen
from traindx.analysis.program.training.gradient_paths import GradientPath, keeps_graph
from traindx.analysis.program.training.gradients import (
    NEW,
    carriers,
    has_history,
    history,
    is_cut,
    runs_weights,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.layers import has_parameters
from traindx.analysis.program.training.losses import losses
from traindx.analysis.program.training.operations import LOSSES, operation_name, operation_of
from traindx.analysis.program.training.phases import Loop, loops_of, training_loops
from traindx.analysis.program.training.updates import (
    count_of_turns,
    excludes,
    happens_with,
    is_one_turn,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

LEARNS = (Do.BACKWARD, Do.STEP, Do.GRAD, Do.MANUAL_UPDATE)


def graph_of(value: Value, most: int = 4000, *, certain: bool = True) -> Iterator[Value]:
    """Yield what is certainly in the graph of a value, nearest first.

    A function out of sight may detach what it is given, and of a choice one side may; where it
    need not be certain, both sides of a choice are followed.
    """
    pending, seen = [value], {id(value)}
    while pending and most:
        most -= 1
        found = pending.pop(0)
        is_open = isinstance(found, Choice) and certain
        if is_cut(found) or is_open or isinstance(found, (Unknown, Instance)):
            continue
        yield found
        for below in () if _is_opaque(found) else carriers(found):
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)


CLEARS = frozenset({".clear", ".remove", ".__delitem__", "[]"})
TAKES = frozenset({".pop", ".popleft"})


def is_emptied(story: Story, kept: Value, loop: LoopRun | None = None) -> bool:
    """Tell whether anything is ever taken out of a list, in a loop where one is asked for."""
    takes = _takes_from(story, kept)
    return any(loop is None or turn_in(e, loop) is not None for e in takes)


def is_cleared(story: Story, kept: Value) -> bool:
    """Tell whether a list may be emptied; a full queue that loses its oldest keeps the others."""
    return any(not (e.name in TAKES and e.guards) for e in _takes_from(story, kept))


def _takes_from(story: Story, kept: Value) -> Iterator[ProgramEvent]:
    """`kept.clear()`, `kept.pop(0)`, `del kept[:]`."""
    yield from (e for e in story.index.named("operator.delitem") if e.args[0] is kept)
    yield from (e for e in story.index.on(kept) if e.name in CLEARS | TAKES)


# what a running total is made by: sums and scaling
SUMS = frozenset({"add", "sub", "mul", "div", "neg", "cat", "stack", "to", "cpu", "cuda", "sum"})


def summed(value: Value, most: int = 400) -> Iterator[Value]:
    """Yield what a value is a sum of, its own last values included, nearest first.

    A hidden state is no sum: a layer lies between it and the state before.
    """
    pending, seen = [value], {id(value)}
    while pending and most:
        most -= 1
        found = pending.pop(0)
        if is_cut(found):
            continue
        yield found
        operation = operation_of(found)
        is_sum = operation is not None and operation.name in SUMS
        for below in found.inputs if is_sum or isinstance(found, (Choice, Items)) else ():
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)


def _is_opaque(value: Value) -> bool:
    if not isinstance(value, Result):
        return False
    if value.maker == "()":
        is_layer = isinstance(value.receiver, Result) and value.receiver.maker.startswith("torch.")
        return not is_layer and runs_weights(value) is not None
    return value.maker.split(".", 1)[0] not in ("torch", "operator", "builtins", "math", "")


def is_node(value: Value) -> bool:
    """Tell whether a value is computed by a recorded operation: no weight, input or constant."""
    if not isinstance(value, Result) or is_cut(value) or value.maker in NEW:
        return False
    is_leaf = value.maker.endswith("nn.Parameter") or value.maker == "builtins.next"
    return not is_leaf and has_history(value) is Answer.YES


@dataclass(frozen=True, eq=False)
class Carried:
    """A value of one turn of a loop that is in the graph of a later turn's."""

    value: Value
    taken: Value  # what is computed from it in the later turn


class Graphs:
    """The graphs of a story."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._made: dict[int, ProgramEvent] = {}
        for event in story.events:
            if event.result is not None and not event.is_own:
                self._made.setdefault(id(event.result), event)

    def made_at(self, value: Value) -> ProgramEvent | None:
        """Return the event that made a value; of a part, what made the whole."""
        while isinstance(value, Part):
            value = value.of
        return self._made.get(id(value))

    def pairs(self) -> Iterator[tuple[Deed, Deed, LoopRun]]:
        """Yield each backward in two turns of the loop that it stands in, each place once."""
        first: dict[tuple[int, int], Deed] = {}
        seen: set[int] = set()
        for deed in self.story.does(Do.BACKWARD):
            if not deed.event.turns:
                continue
            turn = deed.event.turns[-1]
            key = (id(deed.event.node), id(turn.loop))
            if turn.number == 0:
                first.setdefault(key, deed)
            elif key in first and id(deed.event.node) not in seen:
                seen.add(id(deed.event.node))
                yield first[key], deed, turn.loop

    def carried(self, backward: Deed) -> list[Carried]:
        """Return what the graph of a backward pass holds of earlier turns of its loops."""
        found = []
        for node in graph_of(backward.subject) if backward.subject is not None else ():
            made = self.made_at(node)
            if not isinstance(node, Result) or made is None or _is_opaque(node) or is_cut(node):
                continue
            if is_one_turn(made, backward.event):
                held = (v for v in self._held(node) if self._is_earlier(v, backward))
                grown = (v for v in held if id(v) not in self._cached([v], backward))
                found += [Carried(v, node) for v in grown if _holds_graph(v)]
        return found

    def _is_earlier(self, value: Value, backward: Deed) -> bool:
        made = self.made_at(value)
        return made is not None and not is_one_turn(made, backward.event)

    def _held(self, node: Value) -> Iterator[Value]:
        """Yield what a value is computed from, and the members of a list that only grows."""
        for below in carriers(node):
            yield below
            if isinstance(below, Items) and not is_cleared(self.story, below):
                yield from below.members

    def is_let_go(self, value: Value) -> bool:
        """Tell whether a value is detached in place, or may be by what it is handed to."""
        calls = (e.receiver for e in self.story.index.named(".detach_"))
        if any(r is not None and (depends_on(r, value) or depends_on(value, r)) for r in calls):
            return True
        return self.story.escapes(value) is not Answer.NO

    def freed_by(
        self, first: Deed, second: Deed, one: dict[int, Value], other: dict[int, Value]
    ) -> Value | None:
        """Return what the graphs of two backward passes share, where the first one frees it."""
        if keeps_graph(first) or not _follows(self.story, first, second):
            return None
        ways = GradientPath(first), GradientPath(second)
        both = [v for i, v in other.items() if i in one and all(w.passes(v) for w in ways)]
        if any(isinstance(v, Items) and is_emptied(self.story, v) for v in both):
            return None  # of which turn its members are is not known
        cached = self._cached(both, second)
        shared = [v for v in both if is_node(v) and not _is_apart(v, one, other)]
        shared = [v for v in shared if id(v) in cached or self._is_one(v, second)]
        if not any(operation_name(v.maker) in KEEP for v in shared if isinstance(v, Result)):
            return None
        value = shared[0]
        return None if self.is_let_go(value) or self.may_be_frozen(value) else value

    def _cached(self, shared: list[Value], backward: Deed) -> set[int]:
        """What was computed for an attribute that was filled once, in an earlier turn.

        It stays as it is, and grows no graph from turn to turn.
        """
        found: set[int] = set()
        for event in self.story.index.stores:
            if event.name == "[]" or not any(event.args[0] is v for v in shared):
                continue
            again = (e for e in self.story.index.stores if e.node is event.node)
            is_once = not any(is_one_turn(e, backward.event) for e in again)
            if is_once and not is_one_turn(event, backward.event):
                found |= {id(v) for v in graph_of(event.args[0])}
        return found

    def _is_one(self, value: Value, backward: Deed) -> bool:
        """Tell whether a value is no older than the turn of a loop that backward runs in."""
        event = self.made_at(value)
        return event is not None and is_one_turn(event, backward.event)

    def may_be_frozen(self, value: Value) -> bool:
        """Tell whether gradients of a layer that a value was computed by are switched off."""
        layers = (v for v in history(value) if has_parameters(v))
        return any(is_ever_frozen(self.story, layer) is not Answer.NO for layer in layers)


def _holds_graph(value: Value) -> bool:
    base = value
    while isinstance(base, Part):
        base = base.of
    is_kept = not is_cut(value) and not isinstance(value, (Choice, Items))
    return is_kept and is_node(base) and has_history(value) is Answer.YES


def turn_in(event: ProgramEvent, loop: LoopRun) -> int | None:
    """Return the turn of a loop in which something happens."""
    return next((t.number for t in event.turns if t.loop is loop), None)


def feeds_backward(story: Story, value: Value) -> bool:
    """Tell whether some backward, or gradient by hand, is computed from a value."""
    for deed in story.does(Do.BACKWARD, Do.GRAD):
        if deed.subject is not None and any(v is value for v in origins(deed.subject)):
            return True
    return False


# operations that keep what they need for backward, which the first backward frees
KEEP = LOSSES | {"()", "mul", "matmul", "exp", "pow", "div", "sigmoid", "tanh", "softmax", "log",
                 "sqrt", "square", "relu", "log_softmax", "norm", "gather", "embedding", "linear",
                 "dropout", "clamp", "normalize", "gelu", "silu", "conv2d", "max", "softplus",
                 "logsumexp"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class FreedGraph:
    """A value whose graph the first of two backward passes frees for the second."""

    value: Value
    first: Deed
    second: Deed

    @property
    def is_old(self) -> bool:
        """Whether the two are one call, in two turns of a loop that the graph was made before."""
        return not is_one_turn(self.first.event, self.second.event)


def freed_graphs(story: Story) -> Iterator[FreedGraph]:
    """Yield what two backward passes both run through, though the first one keeps nothing."""
    graphs = story.recall(Graphs)
    known: list[tuple[Deed, dict[int, Value]]] = []
    for second in story.does(Do.BACKWARD, Do.GRAD):
        is_partial = second.do is Do.BACKWARD and "inputs" in second.event.kwargs
        if second.subject is None or second.event.by_framework or is_partial:
            continue
        nodes = {id(v): v for v in graph_of(second.subject)}
        for first, below in known:
            value = graphs.freed_by(first, second, below, nodes)
            if value is not None:
                yield FreedGraph(value, first, second)
                break
        known.append((second, nodes))


def _follows(story: Story, first: Deed, second: Deed) -> bool:
    """Tell whether one backward pass certainly ran before another, or does so every n turns."""
    one, other = first.event, second.event
    if is_one_turn(one, other):
        comes = happens_with(other, one) and count_of_turns(story, one) is not None
        return (comes or happens_with(one, other)) and not excludes(one, other)
    return not first.event.guards and not second.event.guards


def _is_apart(value: Value, one: dict[int, Value], other: dict[int, Value]) -> bool:
    """Tell whether two graphs use different outputs of something whose inside is out of sight."""
    if not _is_opaque(value):
        return False
    parts = [{id(v) for v in graph.values() if isinstance(v, Part) and v.of is value}
             for graph in (one, other)]  # fmt: skip
    return all(parts) and not parts[0] & parts[1]


def needlessly_kept(story: Story) -> Iterator[Deed]:
    """Yield the only backward pass of a loop where it keeps a graph that nothing uses again."""
    for loop in training_loops(story):
        backward = _only_backward(loop)
        if backward is None or constant(backward.event.argument("retain_graph")) is not True:
            continue
        if backward.event.argument("create_graph") is None:
            yield backward


def _only_backward(loop: Loop) -> Deed | None:
    """The one backward pass of a loop, where each turn of it makes a graph of its own."""
    backwards = {d.event.node: d for d in loop.does(Do.BACKWARD)}
    stepped = {id(d.subject) for d in loop.does(Do.STEP)}
    if len(backwards) != 1 or len(stepped) != 1 or loop.does(Do.GRAD):
        return None
    (backward,) = backwards.values()
    turns = backward.event.turns
    computed = [*(d.event for d in loop.does(Do.FORWARD)), *losses(loop.story, loop.events)]
    return backward if any(e.turns[: len(turns)] == turns for e in computed) else None


def last_batch_learnt(story: Story) -> Iterator[tuple[Deed, Deed]]:
    """Yield the pass over a loader's last batch and the backward behind the loop that is of it."""
    for loop in loops_of(story):
        if story.kind_of(loop.over).kind is not Kind.LOADER or loop.does(*LEARNS):
            continue
        for backward in story.does(Do.BACKWARD):
            forward = _last_pass(loop, backward)
            if forward is not None:
                yield forward, backward


def _last_pass(loop: Loop, backward: Deed) -> Deed | None:
    """The pass of the last turn of a loop, where a loss is made of it and of no earlier one."""
    if backward.subject is None or not backward.event.turns:
        return None
    around = len(backward.event.turns)
    passes = [
        d
        for d in loop.does(Do.FORWARD)
        if d.event.gradients is Answer.YES
        and not d.event.within
        and d.event.order < backward.event.order
        and d.event.turns[:around] == backward.event.turns
    ]
    reached = {id(v) for v in history(backward.subject)}
    used = [d for d in passes if any(id(v) in reached for v in _outputs(d))]
    turns = {d.event.turns[around].number for d in passes}
    is_last = len(turns) > 1 and {d.event.turns[around].number for d in used} == {max(turns)}
    return used[0] if is_last else None


def _outputs(forward: Deed) -> list[Value]:
    result = forward.event.result
    if result is None:
        return []
    return result.members if isinstance(result, Items) else [result]
