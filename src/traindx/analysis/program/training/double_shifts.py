"""Labels that are moved by one before they reach a language model that moves them itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Result,
    Table,
    Value,
    constant,
    is_same,
)
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.facts.batches import drawn

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# models of Transformers whose loss compares each position with the label of the next
SHIFT = ("LMHeadModel", "ForCausalLM")


def double_shifts(story: Story) -> Iterator[tuple[Value, Value]]:
    """Yield tokens and labels of a causal language model that are one apart already."""
    for event in story.events:
        model = event.receiver
        if event.name not in ("()", "forward") or not _shifts(model):
            continue
        given = _argument(story, event, "input_ids", 0)
        wanted = _argument(story, event, "labels", None)
        if given is None or wanted is None:
            continue
        tokens, labels = (_piece(story, v) for v in (given, wanted))
        if tokens is not None and labels is not None and _is_next(tokens, labels):
            yield given, labels


def _argument(
    story: Story, event: ProgramEvent, name: str, position: int | None
) -> Value | None:  # fmt: skip
    """Return an argument, be it an entry of a batch that is spread: `model(**batch)`."""
    batch = event.kwargs.get("**")
    found = None if batch is None else drawn(story, batch)
    entries = batch if found is None else found.value
    held = entries.fields.get(name) if isinstance(entries, Table) else None
    return event.argument(name, position) if held is None else held


def _shifts(model: Value | None) -> bool:
    while isinstance(model, Result) and model.receiver is not None:
        model = model.receiver
    if not isinstance(model, Result) or not model.maker.startswith("transformers."):
        return False
    maker = model.maker.removesuffix(".from_pretrained").removesuffix(".from_config")
    return maker.endswith(SHIFT)


def _piece(story: Story, value: Value) -> Result | None:
    """Return the slice that a batch is made of, through loaders, stacks and types."""
    batch = drawn(story, value)
    found = whole_tensor(value if batch is None else batch.value)
    if isinstance(found, Result) and found.maker == "torch.stack" and found.args:
        rows = found.args[0]
        found = whole_tensor(rows.members[0]) if isinstance(rows, Items) and rows.members else found
    is_cut = isinstance(found, Result) and found.maker == "operator.getitem"
    return found if isinstance(found, Result) and is_cut else None


def _is_next(tokens: Result, labels: Result) -> bool:
    """Tell whether labels are the tokens one place on: `x[:-1]` and `x[1:]`, `i` and `i + 1`."""
    if not is_same(tokens.args[0], labels.args[0]):
        return False
    first, second = (_bounds(v.args[1]) for v in (tokens, labels))
    if first is None or second is None:
        return False
    begin, later = constant(first[0]), second[0]
    if isinstance(later, Known):
        is_open = isinstance(first[0], Known) and begin in (None, 0)
        return is_open and later.value == 1
    is_sum = isinstance(later, Result) and later.maker == "operator.add" and len(later.args) == 2
    if not isinstance(later, Result) or not is_sum:
        return False
    one, other = later.args
    return any(
        constant(step) == 1 and is_same(base, first[0], by_turn=True)
        for base, step in ((one, other), (other, one))
    )


def _bounds(key: Value) -> tuple[Value, Value] | None:
    """Return where the last slice of a key begins and ends."""
    last = key.members[-1] if isinstance(key, Items) and key.members else key
    is_slice = isinstance(last, Result) and last.maker == "builtins.slice" and len(last.args) > 1
    return (last.args[0], last.args[1]) if isinstance(last, Result) and is_slice else None
