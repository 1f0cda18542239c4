"""Settings that torch refuses together: a sampler and `shuffle=True`, Nesterov without momentum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.truth import is_none, truth_of
from traindx.analysis.program.execution.values import Instance, Known, Result, Value, constant
from traindx.analysis.program.training.facts.certainty import is_certain
from traindx.analysis.program.training.facts.roles import Misuse

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

LOADER = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers",
          "collate_fn", "pin_memory", "drop_last", "timeout")  # fmt: skip
SGD = ("params", "lr", "momentum", "dampening", "weight_decay", "nesterov")
Settings = dict[str, Value]
Found = tuple[str, str, str]  # the setting, what the call takes, what it gets


def refused_settings(story: Story) -> Iterator[Misuse]:
    """Yield the calls whose settings exclude each other."""
    for event in story.events:
        judge = JUDGES.get(event.name)
        if judge is None or event.act is not EventForm.CALL or not is_certain(event):
            continue
        names, ask = judge
        settings = _named(event, names)
        found = None if settings is None else ask(settings)
        if found is not None and settings is not None:
            yield Misuse(event, settings[found[0]], found[1], found[2])


def _named(event: ProgramEvent, names: tuple[str, ...]) -> Settings | None:
    """Return the arguments of a call by name; None where some are out of sight."""
    is_open = "**" in event.kwargs or len(event.args) > len(names)
    if is_open or any(isinstance(a, Result) and a.maker == "operator.spread" for a in event.args):
        return None
    return {**dict(zip(names, event.args, strict=False)), **event.kwargs}


def _loader(given: Settings) -> Found | None:
    """Judge a DataLoader: who orders the examples, who makes batches, who loads them."""
    dataset = given.get("dataset")
    orders = [n for n in ("sampler", "batch_sampler") if _is_there(given.get(n))]
    if orders and _is_on(given.get("shuffle")):
        return "shuffle", f"either a {_word(orders[0])} or shuffle=True", "both"
    if "batch_sampler" in orders:
        taken = [n for n in ("sampler", "drop_last") if _is_on(given.get(n), is_made=True)]
        size = constant(given.get("batch_size"))
        taken += ["batch_size"] if isinstance(size, int) and size != 1 else []
        if taken:
            return taken[0], f"either a batch sampler or {taken[0]}", "both"
    if isinstance(dataset, Instance) and any("IterableDataset" in f for f in dataset.cls.foreign):
        if _is_on(given.get("shuffle")):
            return "shuffle", "no shuffle=True for an IterableDataset", "it"
        if orders:
            return orders[0], f"no {_word(orders[0])} for an IterableDataset", "one"
    has_workers = given.get("num_workers", Known(0))
    if constant(has_workers) == 0 and _is_on(given.get("persistent_workers")):
        return "persistent_workers", "persistent_workers=True with workers only", "num_workers=0"
    return None


def _sgd(given: Settings) -> Found | None:
    momentum = constant(given.get("momentum", Known(0)))
    if _is_on(given.get("nesterov")) and momentum == 0:
        return "nesterov", "nesterov=True with a momentum only", "no momentum"
    return None


def _word(name: str) -> str:
    return name.replace("_", " ")


def _is_there(value: Value | None) -> bool:
    """Tell whether a setting is certainly given, and is not None."""
    return value is not None and is_none(value) is False


def _is_on(value: Value | None, *, is_made: bool = False) -> bool:
    """Tell whether a setting is certainly true; an object is, with `is_made`."""
    return value is not None and (truth_of(value) is True or (is_made and _is_object(value)))


def _is_object(value: Value) -> bool:
    return not isinstance(value, Known) and _is_there(value)


JUDGES: dict[str, tuple[tuple[str, ...], Callable[[Settings], Found | None]]] = {
    "torch.utils.data.DataLoader": (LOADER, _loader),
    "torch.optim.SGD": (SGD, _sgd),
}
