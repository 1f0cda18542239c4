"""What calls of torch take, by position, and what they are given instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.examples import is_loader
from traindx.analysis.program.execution.values import Items, Known, Result, Value
from traindx.analysis.program.training.facts.certainty import is_certain
from traindx.analysis.program.training.facts.dtypes import WITH_WEIGHTS
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.layers import is_module, layer_kind

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MODEL, LOADER, OPTIMIZER = "a model", "a data loader", "an optimizer"
TENSOR, ARRAY, NUMBER, TEXT = "a tensor", "a numpy array", "a number", "a text"
LIST, PARAMETERS = "a list", "parameters"
THINGS = frozenset({MODEL, LOADER, OPTIMIZER, TENSOR, ARRAY, NUMBER, TEXT, LIST, PARAMETERS})


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a call: where it is, what it takes, and which roles it refuses."""

    at: int
    name: str
    takes: str
    refuses: frozenset[str]


def _only(at: int, name: str, takes: str, *others: str) -> Slot:
    return Slot(at, name, takes, THINGS - {takes, *others})


CALLS: dict[str, tuple[Slot, ...]] = {
    "torch.optim.swa_utils.update_bn": (
        _only(0, "loader", LOADER, LIST, TENSOR), _only(1, "model", MODEL),
    ),
    "torch.optim.swa_utils.AveragedModel": (_only(0, "model", MODEL),),
    "torch.optim.lr_scheduler.ChainedScheduler": (
        _only(0, "schedulers", "a list of schedulers", LIST),
    ),
    "torch.optim.swa_utils.SWALR": (_only(0, "optimizer", OPTIMIZER),),
    "torch.utils.data.DataLoader": (
        Slot(0, "dataset", "a dataset", frozenset({MODEL, OPTIMIZER, LOADER, NUMBER})),
        Slot(1, "batch_size", NUMBER, frozenset({MODEL, OPTIMIZER, LOADER, TENSOR, ARRAY, LIST})),
    ),
    "torch.utils.data.TensorDataset": (
        Slot(0, "", TENSOR, frozenset({ARRAY, LIST, NUMBER})),
        Slot(1, "", TENSOR, frozenset({ARRAY, LIST, NUMBER})),
    ),
    "torch.from_numpy": (Slot(0, "", ARRAY, frozenset({TENSOR, LIST, NUMBER})),),
    "torch.cat": (Slot(1, "dim", NUMBER, frozenset({TENSOR, ARRAY, LIST})),),
    "torch.stack": (Slot(1, "dim", NUMBER, frozenset({TENSOR, ARRAY, LIST})),),
    "torch.nn.Sequential": (Slot(0, "", "modules", frozenset({LIST, TENSOR, NUMBER})),),
    "torch.nn.ModuleList": (Slot(1, "", "one list of modules", frozenset({MODEL})),),
    "torch.save": (Slot(1, "f", "a path", frozenset({MODEL, OPTIMIZER, LOADER, TENSOR})),),
    "torch.utils.data.random_split": (
        Slot(1, "lengths", "a list of lengths", frozenset({NUMBER})),
    ),
    "torch.nn.utils.clip_grad_norm_": (
        Slot(0, "parameters", PARAMETERS, frozenset({OPTIMIZER, MODEL, LOADER})),
        Slot(1, "max_norm", NUMBER, frozenset({OPTIMIZER, MODEL})),
    ),
    "torch.nn.utils.clip_grad_value_": (
        Slot(0, "parameters", PARAMETERS, frozenset({OPTIMIZER, MODEL, LOADER})),
    ),
}  # fmt: skip
METHODS: dict[tuple[Kind, str], Slot] = {
    (Kind.OPTIMIZER, ".step"): Slot(0, "closure", "a closure", frozenset({TENSOR, NUMBER, MODEL})),
    (Kind.OPTIMIZER, ".load_state_dict"): Slot(0, "", "a state dict", frozenset({OPTIMIZER, TEXT})),
    (Kind.MODEL, ".load_state_dict"): Slot(0, "", "a state dict", frozenset({MODEL, TEXT})),
    (Kind.MODEL, ".train"): Slot(0, "mode", "True or False", frozenset({LOADER, OPTIMIZER})),
}  # fmt: skip
SCHEDULERS = "torch.optim.lr_scheduler."


@dataclass(frozen=True, slots=True, eq=False)
class Misuse:
    """An argument of another kind than a call takes."""

    event: ProgramEvent
    given: Value
    takes: str
    gets: str


def misuses(story: Story) -> Iterator[Misuse]:
    """Yield the calls that are given something else than they take."""
    for event in story.events:
        if event.act is not EventForm.CALL or event.is_own:
            continue
        for slot in _slots(story, event):
            given = event.args[slot.at] if slot.at < len(event.args) else None
            if given is None and slot.name:
                given = event.kwargs.get(slot.name)
            gets = "" if given is None else role_of(story, given)
            if given is not None and gets in slot.refuses and is_certain(event):
                yield Misuse(event, given, slot.takes, gets)
                break


def _slots(story: Story, event: ProgramEvent) -> tuple[Slot, ...]:
    if event.name in CALLS:
        return CALLS[event.name]
    if event.name.startswith(SCHEDULERS):
        return (_only(0, "optimizer", OPTIMIZER),)
    if event.name == "()" and layer_kind(event.receiver) in WITH_WEIGHTS:
        return (Slot(0, "input", TENSOR, frozenset({ARRAY, LIST, TEXT})),)
    home, _, last = event.name.rpartition(".")
    if home == "torch.optim":
        return (Slot(1, "lr", NUMBER, frozenset({PARAMETERS, MODEL, LOADER, OPTIMIZER})),)
    if home == "torch.nn" and last.endswith("Loss"):
        at, takes = int(_is_weighted(last)), "settings; the loss is called afterwards"
        return (Slot(at, "", takes, frozenset({TENSOR})),)
    nature = story.kind_of(event.receiver)
    slot = METHODS.get((nature.kind, event.name)) if nature.is_certain else None
    return () if slot is None else (slot,)


def _is_weighted(loss: str) -> bool:
    """Tell whether the first setting of a loss is a tensor of weights."""
    return loss in ("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss",
                    "MultiLabelSoftMarginLoss", "MultiMarginLoss")  # fmt: skip


def role_of(story: Story, value: Value) -> str:
    """Return what a value certainly is, in words; empty where that is not known."""
    if is_loader(value):
        return LOADER
    if is_module(value) and not layer_kind(value).endswith("Loss"):
        return MODEL
    nature = story.kind_of(value)
    if nature.is_certain and nature.kind is Kind.OPTIMIZER:
        return OPTIMIZER
    if isinstance(value, Items):
        return LIST if value.kind == "list" else ""
    if isinstance(value, Known):
        return TEXT if isinstance(value.value, str) else ""
    if isinstance(value, Result) and value.maker in (".parameters", ".named_parameters"):
        return PARAMETERS
    found = story.dtypes.of(value)
    if found is None:
        return ""
    if found.holder == "number":
        return NUMBER
    if found.holder == "array":
        return ARRAY if found.is_single is False else ""
    return TENSOR
