"""Names that are called, or used as a library, and hold a result instead."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
)
from traindx.analysis.program.training.claims import callee_text
from traindx.analysis.program.training.facts.certainty import is_certain
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.operations import name_of_operation
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.shapes import RANKED
from traindx.analysis.program.training.tensors import is_computed_tensor, is_number, is_tensor

# methods of nn.Module by names that people give to what they keep
MODULE_METHODS = frozenset({"parameters", "modules", "children", "buffers", "state_dict", "train",
                            "eval", "type", "named_parameters", "forward"})  # fmt: skip


class HiddenRole(Enum):
    """What a name should have been where it is called."""

    MODEL = "model"
    LOSS = "loss"
    BUILT_IN = "built-in"
    METHOD = "method of nn.Module"
    FUNCTION = "function of that name"
    LIBRARY = "library"


@dataclass(frozen=True, slots=True, eq=False)
class ShadowedName:
    """A call of a name that holds a value, and where the value was made."""

    role: HiddenRole
    event: ProgramEvent
    value: Value
    name: str
    made: ProgramEvent | None = None

    @property
    def noun(self) -> str:
        """What the name holds, in a word."""
        if isinstance(self.value, (Items, Table)):
            return "list" if isinstance(self.value, Items) else "dict"
        if _is_data(self.value):
            return "data set"
        return "tensor" if isinstance(self.value, Part) else "number"

    @property
    def place(self) -> object:
        """One name in one function."""
        root = callee_text(self.event).partition(".")[0]
        return self.event.function or self.event.module, root


def shadowed_names(story: Story) -> Iterator[ShadowedName]:
    """Yield the calls of names that hold a result, a size or a plain value instead."""
    for event in story.events:
        called = event.receiver
        if event.act is not EventForm.CALL or called is None or event.is_own:
            continue
        found = None if _is_uncertain(event, called) else _shadow(story, event, called)
        if found is not None:
            yield found


def _shadow(story: Story, event: ProgramEvent, called: Value) -> ShadowedName | None:
    name = callee_text(event)
    last = name.rpartition(".")[2]
    if event.name != "()":
        root = name.partition(".")[0]
        is_hidden = root in event.module.aliases and root in called.names
        is_size = is_hidden and is_number(called)
        return ShadowedName(HiddenRole.LIBRARY, event, called, root) if is_size else None
    if hasattr(builtins, name) and (_is_plain(called) or _is_uncallable(story, called)):
        return ShadowedName(HiddenRole.BUILT_IN, event, called, name)
    if last not in called.names:
        return None
    is_defined = story.program.defines(last)
    if is_defined and _is_uncallable(story, called):
        return ShadowedName(HiddenRole.FUNCTION, event, called, last)
    if isinstance(called, Result) and not (is_number(called) and is_defined):
        return _replaced(story, event, called, name)
    needed = HiddenRole.METHOD if last in MODULE_METHODS else HiddenRole.FUNCTION
    is_needed = is_defined or needed is HiddenRole.METHOD
    is_value = isinstance(called, Result) or _is_plain(called)
    # a number of which nobody asks whether it can be called cannot be, whatever was meant
    is_number_called = isinstance(called, Known) and is_number(called) and is_certain(event)
    is_hidden = (is_needed and is_value) or is_number_called
    return ShadowedName(needed, event, called, last) if is_hidden else None


def _replaced(story: Story, event: ProgramEvent, called: Result, name: str) -> ShadowedName | None:
    """A model or loss whose own result took its name."""
    made = story.giver_of(called)
    if made is None or not _is_output(called):
        return None
    is_loss = story.kind_of(made.receiver).kind is Kind.LOSS
    return ShadowedName(HiddenRole.LOSS if is_loss else HiddenRole.MODEL, event, called, name, made)


def _is_output(value: Result) -> bool:
    """Tell whether a value is what a layer or loss computes; torch.vmap gives a function."""
    is_function = value.maker.startswith("torch.") and ".functional." not in value.maker
    return not is_function and is_computed_tensor(value)


# what these give is data, and cannot be called
DATA = frozenset({"random_split", "train_test_split", "DataLoader", "TensorDataset", "Subset",
                  "ConcatDataset", "read_csv"})  # fmt: skip


def _is_uncallable(story: Story, value: Value) -> bool:
    """Tell whether a value is data, or one of the tensors that a function gave together."""
    is_one_of_several = isinstance(value, Part) and isinstance(value.key, (int, str))
    is_part = is_one_of_several and is_tensor(story, value) is Answer.YES
    made = name_of_operation(value.of) if isinstance(value, Part) else None
    return _is_data(value) or is_part or (is_one_of_several and made in RANKED)


def _is_data(value: Value) -> bool:
    made = value.of if isinstance(value, Part) and isinstance(value.key, int) else value
    maker = made.maker if isinstance(made, Result) and made.receiver is None else ""
    return maker.rsplit(".", 1)[-1] in DATA


def _is_uncertain(event: ProgramEvent, called: Value) -> bool:
    """Tell whether the value is only one of several that may be called here."""
    tests = (guard.test for guard in event.guards)
    return any(isinstance(t, Choice) and called in t.options for t in tests)


def _is_plain(value: Value) -> bool:
    if isinstance(value, Known):
        return value.value is not None
    is_operator = isinstance(value, Result) and value.maker.startswith(("operator.", "str."))
    return is_operator or isinstance(value, (Items, Table))
