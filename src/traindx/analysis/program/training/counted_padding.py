"""Padded targets that count in a loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Known,
    Result,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import data_chain
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.operations import (
    Operation,
    name_of_operation,
    operation_of,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

IGNORED = -100  # what cross-entropy leaves out by default
INDEXED = {"scatter": 2, "gather": 2, "one_hot": 0}  # where these operations take class indices
COMPARES = frozenset({"eq", "ne", "gt", "lt", "ge", "le"})
# losses of numbers, which have no index to ignore
OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@dataclass(frozen=True, eq=False)
class CountedPadding:
    """A loss, and the padding that it takes for targets."""

    loss: ProgramEvent
    padded: Value
    is_certain: bool  # else only the name says that the padded tensor is the target


@dataclass(frozen=True, eq=False)
class _Use:
    """A tensor of classes that a loss takes, by itself or as an index."""

    story: Story
    event: ProgramEvent
    target: Value
    ignored: Value | None = None  # cross-entropy's own, -100

    def leaves_out(self, padded: Value | None) -> bool:
        """Tell whether what a tensor is padded with is, or may be, what the loss ignores."""
        if self.ignored is None:
            return False
        pad = None if padded is None else _pad_of(padded)
        is_known = isinstance(constant(self.ignored), int) and isinstance(constant(pad), int)
        return not is_known or constant(pad) == constant(self.ignored)


def counted_padding(program: Program) -> Iterator[CountedPadding]:
    """Yield the losses in which padded positions count, each place once."""
    seen: set[object] = set()
    elsewhere: list[Value] | None = None  # everything padded: looked for where it is asked for
    for use in (*_in_losses(program), *_by_index(program)):
        chain = list(data_chain(use.story, use.target))
        if use.event.node in seen or _is_left_out(use, chain):
            continue
        padded = next((v for v in chain if _pads(v)), None)
        is_certain = padded is not None
        if padded is None:
            elsewhere = _padded(program) if elsewhere is None else elsewhere
            padded = _namesake(chain, elsewhere)
        if padded is not None and not use.leaves_out(padded if is_certain else None):
            seen.add(use.event.node)
            yield CountedPadding(use.event, padded, is_certain)


def _is_left_out(use: _Use, chain: list[Value]) -> bool:
    """Tell whether the program looks for pads on the way to the loss."""
    return _is_marked(use.story, chain) or any(map(_chooses, chain)) or _is_compared(use)


def _padded(program: Program) -> list[Value]:
    """Every padded value, be it used or not."""
    given = (e.result for s in program.stories for e in s.events if e.result is not None)
    return [v for v in (*(v for s in program.stories for v in s.values), *given) if _pads(v)]


def _is_marked(story: Story, chain: list[Value]) -> bool:
    """Tell whether positions of the targets are overwritten: `labels[mask] = -100`."""
    made = [e for x in story.execution.examples for e in x.events]
    stores = (e for e in (*story.events, *made) if e.act is EventForm.STORE and e.name == "[]")
    return any(e.receiver is value for e in stores for value in chain)


def _in_losses(program: Program) -> Iterator[_Use]:
    for loss in program.results("cross_entropy", "nll_loss", *OF_NUMBERS):
        target = loss.operation.argument("target")
        if (
            target is not None
            and loss.event.gradients is not Answer.NO
            and _is_plain(loss.story, loss.event.result, loss.operation)
        ):
            given = loss.operation.settings.get("ignore_index")
            yield _Use(loss.story, loss.event, target, given)


def _is_plain(story: Story, result: Value | None, operation: Operation) -> bool:
    """Tell whether a loss weighs nothing, and its mean is one over all positions."""
    given = operation.settings
    reduction = constant(given.get("reduction"))
    is_reduced = "reduction" not in given or reduction in ("mean", "sum")
    if reduction == "none" and result is not None:
        uses = [operation_of(v) for v in story.made_from(result)]
        is_reduced = bool(uses) and all(u is not None and u.name in ("mean", "sum") for u in uses)
    if operation.name in OF_NUMBERS:
        first = operation_of(operation.argument("input"))
        is_reduced = is_reduced and (first is None or first.name not in ("mul", "getitem"))
    return is_reduced and not {"weight", "**"} & set(given)


def _by_index(program: Program) -> Iterator[_Use]:
    """Losses written by hand: classes are an index into log-probabilities, or made one-hot."""
    for story in program.stories:
        losses = [d.subject for d in story.does(Do.BACKWARD) if d.subject is not None]
        learnt = {id(v) for loss in losses for v in origins(loss)}
        for event in story.events:
            place = INDEXED.get(name_of_operation(event.result) or "")
            operation = None if place is None else operation_of(event.result)
            if operation is None or place is None or len(operation.operands) <= place:
                continue
            made = (event.result, event.receiver)
            if any(v is not None and id(v) in learnt for v in made):
                yield _Use(story, event, operation.operands[place])


def _is_compared(use: _Use) -> bool:
    """Tell whether the program asks of these targets which are pads."""
    own = whole_tensor(use.target)
    for event in use.story.events:
        is_comparison = name_of_operation(event.result) in COMPARES
        operation = operation_of(event.result) if is_comparison else None
        if operation is None:
            continue
        if any(whole_tensor(v) is own or is_same(whole_tensor(v), own) for v in operation.operands):
            return True
    return False


def _chooses(value: Value) -> bool:
    """`targets[targets != 0]`, `targets[i, :length]`: what is taken depends on lengths or pads."""
    if not isinstance(value, Result) or value.maker != "operator.getitem":
        return False
    for key in origins(value.args[1], 30):
        operation = operation_of(key)
        if operation is not None and operation.name in COMPARES | {"nonzero", "invert"}:
            return True
        is_cut = isinstance(key, Result) and key.maker == "builtins.slice"
        if is_cut and not all(isinstance(bound, Known) for bound in key.inputs[1:2]):
            return True
    return False


def _pads(value: Value) -> bool:
    """Tell whether a value is filled up with pads that a loss does not leave out."""
    last = (name_of_operation(value) or "").rsplit(".", 1)[-1]
    operation = operation_of(value) if last in ("pad_sequence", "add") else None
    if operation is None:
        return False
    if last == "pad_sequence":
        return constant(_pad_of(value)) != IGNORED
    if last != "add" or len(operation.operands) != 2:
        return False
    return _fills(operation.operands[1])


def _pad_of(padded: Value) -> Value | None:
    """What a tensor is padded with."""
    operation = operation_of(padded)
    if operation is None or operation.name.rsplit(".", 1)[-1] != "pad_sequence":
        return None
    given = operation.settings.get("padding_value")
    if given is None and len(operation.operands) > 2:
        given = operation.operands[2]
    return Known(0) if given is None else given


def _fills(value: Value) -> bool:
    """`[pad] * (length - len(tokens))`."""
    operation = operation_of(value)
    if operation is None or operation.name != "mul" or len(operation.operands) != 2:
        return False
    listed, count = operation.operands
    members = listed.members if isinstance(listed, Items) else []
    is_counted = any(
        isinstance(v, Result) and v.maker == "builtins.len" for v in origins(count, 12)
    )
    is_pad = len(members) == 1 and (
        constant(members[0]) == 0 or any("pad" in name.lower() for name in names_of(members[0]))
    )
    return is_pad and is_counted


def _namesake(chain: list[Value], padded: list[Value]) -> Value | None:
    """A padded value that goes by the name of a target whose making is out of sight."""
    names = {n for v in chain for n in names_of(v)}
    is_position = any((o := operation_of(v)) is not None and o.operands for v in chain[:1])
    for value in padded:
        own = {n for v in (value, *value.inputs[:1]) for n in names_of(v)}
        if is_position and own & names:
            return value
    return None
