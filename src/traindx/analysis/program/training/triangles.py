"""Masks of attention under which a position sees nothing: triangles with their diagonal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Items, Result, Value, constant
from traindx.analysis.program.training.claims import node_of, replace, source_text
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.mask_matrices import blocked_rows, mask_uses
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import (
    Operation,
    is_in_place,
    operation_name,
    operation_of,
)
from traindx.analysis.program.training.program import Program, Story

FAR = -1e3  # a score that low is as good as −inf
MASKS = ("attn_mask", "src_mask", "tgt_mask", "mask")
SAME_AS_ONE = {"eq": (1, True), "ne": (0, False), "gt": (0, False)}


@dataclass(frozen=True, eq=False)
class ClosedMask:
    """A mask that hides all from a position, and where it is used."""

    mask: Result
    use: ProgramEvent
    is_triangle: bool  # which another diagonal would open

    def patch(self) -> str | None:
        """Return the patch that lets a triangle begin above its diagonal."""
        written, given = source_text(self.mask), self.mask.kwargs.get("diagonal")
        if given is not None and given.site is not None:
            return replace(given, "1")
        is_positional = len(self.mask.args) > (1 if self.mask.receiver is None else 0)
        if given is not None or is_positional or not written.endswith(")"):
            return None
        inside = written[:-1].rstrip().rstrip(",")
        separator = "" if inside.endswith("(") else ", "
        return replace(self.mask, f"{inside}{separator}diagonal=1)")


def closed_masks(program: Program) -> Iterator[ClosedMask]:
    """Yield the masks that leave a position nothing to see, each once."""
    seen: set[object] = set()
    for story in program.stories:
        for event in story.events:
            for mask in _blocking(event):
                triangle = _triangle(mask)
                node = node_of(triangle)
                if triangle is None or node is None or node in seen:
                    continue
                if not _is_changed(story, triangle):
                    seen.add(node)
                    yield ClosedMask(triangle, event, is_triangle=True)
            closed = _closed(story, event) if event.node not in seen else None
            if closed is not None and node_of(closed) not in (None, *seen):
                seen.update((event.node, node_of(closed)))
                yield ClosedMask(closed, event, is_triangle=False)


def _closed(story: Story, event: ProgramEvent) -> Result | None:
    """Return a mask under which a position sees nothing, where it is used so."""
    for use in mask_uses(event):
        made = blocked_rows(use)
        if made and not any(_is_changed(story, tensor) for tensor in made):
            return made[0]
    return None


def _blocking(event: ProgramEvent) -> Iterator[Value]:
    """The masks that block what they mark in an event: of a softmax, of an attention layer."""
    layer = event.receiver
    if event.name == "()" and isinstance(layer, Result) and layer.maker.startswith("torch.nn."):
        kind = layer.maker.rsplit(".", 1)[-1]
        if kind == "MultiheadAttention" or kind.startswith("Transformer"):
            yield from (event.kwargs[name] for name in MASKS if name in event.kwargs)
            return
    operation = operation_of(event.result)
    if operation is None or operation.name not in ("softmax", "log_softmax"):
        return
    for scores in same_numbers(operation.operands[0]) if operation.operands else ():
        yield from _masks_of(operation_of(scores))


def _masks_of(scores: Operation | None) -> Iterator[Value]:
    """What is filled into scores or added to them."""
    if scores is None:
        return
    if scores.name == "masked_fill" and len(scores.operands) > 2:
        value = number_of(scores.operands[2])
        if value is not None and value <= FAR:
            yield scores.operands[1]
    elif scores.name == "add":
        yield from (v for v in scores.operands if _is_far(operation_of(_plain(v))))


def _plain(value: Value) -> Value:
    """The value behind moves, casts, and comparisons that say what a mask says."""
    for _ in range(12):
        value = next(iter(same_numbers(value)), value)
        operation = operation_of(value)
        if operation is None:
            return value
        if operation.name == "bool":
            value = operation.operands[0]
        elif operation.name == "mul":
            value = next((v for v in operation.operands if isinstance(v, Result)), value)
        elif operation.name in SAME_AS_ONE and len(operation.operands) == 2:
            if constant(operation.operands[1]) not in SAME_AS_ONE[operation.name]:
                return value
            value = operation.operands[0]
        else:
            return value
    return value


def _is_far(operation: Operation | None) -> bool:
    """Tell whether a triangle is one of −inf."""
    made = None if operation is None or not operation.operands else operation.operands[0]
    square = operation_of(made)
    if square is None or square.name != "full" or len(square.operands) < 2:
        return False
    value = number_of(square.operands[1])
    return value is not None and value <= FAR


def _triangle(mask: Value) -> Result | None:
    """The upper triangle with its diagonal that a mask is, as it is."""
    moved = [operation_of(v) for v in _moves(mask)]
    if any(m is not None and m.name in ("transpose", "t", "permute", "T") for m in moved):
        return None
    value = _plain(mask)
    operation = operation_of(value)
    if operation is None or operation.name != "triu" or not isinstance(value, Result):
        return None
    given = operation.settings.get("diagonal", next(iter(operation.operands[1:]), None))
    number = 0 if given is None else constant(given)
    is_whole = isinstance(number, int) and number <= 0
    return value if is_whole and operation.operands and _is_square(operation.operands[0]) else None


def _moves(value: Value) -> Iterator[Value]:
    for _ in range(12):
        yield value
        operation = operation_of(value)
        if operation is None or not operation.operands:
            return
        value = operation.operands[0]


def _is_square(value: Value) -> bool:
    """Tell whether a tensor is the same everywhere, with sides that are one value."""
    operation = operation_of(next(iter(same_numbers(value)), value))
    if operation is None or operation.name not in ("ones", "full"):
        return False
    sides = list(operation.operands)
    if sides and isinstance(sides[0], Items):
        sides = sides[0].members
    elif operation.name == "full":
        return False
    return len(sides) >= 2 and _is_same(sides[-1], sides[-2])


def _is_same(first: Value, second: Value) -> bool:
    known = constant(first)
    if first is second or (known is not None and known == constant(second)):
        return True
    if not isinstance(first, Result) or not isinstance(second, Result):
        return False
    pairs = zip(first.inputs, second.inputs, strict=False)
    is_alike = first.maker == second.maker and len(first.inputs) == len(second.inputs)
    return is_alike and first.maker != "()" and all(_is_same(a, b) for a, b in pairs)


def _is_changed(story: Story, triangle: Result) -> bool:
    """Tell whether a mask may get another diagonal after it was made; −inf opens nothing."""
    for event in story.events:
        changed = event.receiver if event.receiver is not None else next(iter(event.args), None)
        if changed is None or not any(v is triangle for v in _moves(changed)):
            continue
        name = operation_name(event.name)
        if event.act is Form.STORE or "diagonal" in name:
            return True
        if is_in_place(event.name) and not (name == "masked_fill" and _fills_far(event)):
            return True
    return False


def _fills_far(event: ProgramEvent) -> bool:
    value = number_of(event.args[1]) if len(event.args) > 1 else None
    return value is not None and value <= FAR
