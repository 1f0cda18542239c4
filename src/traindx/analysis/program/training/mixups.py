"""Calls that get a model where they need its parameters, or the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Known, Method, Part, Result, Value
from traindx.analysis.program.training.claims import source_text
from traindx.analysis.program.training.kinds import Kind, kind_made_by
from traindx.analysis.program.training.layers import is_module
from traindx.analysis.program.training.program import Story

LISTS = (".parameters", ".named_parameters")
AVERAGES = "torch.optim.swa_utils.AveragedModel"
TAKES_PARAMETERS = frozenset(
    {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_",
     "torch.nn.utils.parameters_to_vector"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Mixup:
    """A call that needs one thing of a model and gets another, in words."""

    call: ProgramEvent
    needed: str
    got: str

    @property
    def given(self) -> str:
        """What it is given as it is written."""
        value = _given(self.call)
        return "?" if value is None else source_text(value)


def mixups(story: Story) -> Iterator[Mixup]:
    """Yield the calls that get something else of a model than they need."""
    for event in story.events:
        if event.act is EventForm.CALL and not event.is_own:
            wrong = _mismatch(event)
            if wrong is not None:
                yield Mixup(event, *wrong)


def _given(event: ProgramEvent) -> Value | None:
    found = event.args[0] if event.args else next(iter(event.kwargs.values()), None)
    return found if found is not None and found.site is not None else None


def _mismatch(event: ProgramEvent) -> tuple[str, str] | None:
    """Return what a call needs and what it gets, in words."""
    given = event.args[0] if event.args else event.kwargs.get("params")
    if given is None:
        return None
    is_optimizer = kind_made_by(event.name) is Kind.OPTIMIZER and event.name.startswith("torch.")
    if is_optimizer or event.name in TAKES_PARAMETERS:
        if is_module(given):
            return "parameters", "the model itself"
        return ("parameters", "a method that is not called") if _is_method(given) else None
    receiver = event.receiver
    if event.name == ".update_parameters" and isinstance(receiver, Result):
        is_list = isinstance(given, Result) and given.maker in LISTS
        return ("the model", "its parameters") if receiver.maker == AVERAGES and is_list else None
    if event.name == ".load_state_dict" and is_module(receiver):
        if is_module(given):
            return "a state dict", "a model"
        is_path = isinstance(given, Known) and isinstance(given.value, str)
        return ("a state dict", "the name of a file") if is_path else None
    return None


def _is_method(value: Value) -> bool:
    if isinstance(value, Method):
        return f".{value.name}" in LISTS
    return isinstance(value, Part) and f".{value.key}" in LISTS and is_module(value.of)
