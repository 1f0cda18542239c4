"""What a loader hands out: its dataset, sampler and collate function, run for one example.

Workers run these out of the loops that consume the batches, so what happens there is no part of the
program's own events: it is kept apart, by the loader.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import calls, iteration, names
from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.machine import MAX_WORK, OutOfWork
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    FunctionValue,
    Generator,
    Instance,
    Items,
    Known,
    Part,
    PartialCall,
    Result,
    Scope,
    Table,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

WORK = 8_000  # expressions that one example may take
MAX_EXAMPLES = 24  # loaders of one program
SIGNATURE = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn",
    "pin_memory", "drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator",
)  # fmt: skip
LOADERS = frozenset({"DataLoader", "StatefulDataLoader"})
SPLITS = frozenset({"torch.utils.data.random_split"})
INDEX = "the index of an example"
EXAMPLE = "the example that a batch has many of"


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One batch of a loader: its value, and what happened to make it, in order.

    `order` is what the sampler did; both are empty where they are out of sight. `loops` are those
    in which a dataset that is a stream hands it out.
    """

    loader: Value
    value: Value | None
    events: tuple[ProgramEvent, ...]
    order: tuple[ProgramEvent, ...]
    loops: tuple[LoopRun, ...] = ()
    length: Value | None = None  # of the dataset, where its class says it
    start: tuple[ProgramEvent, ...] = ()  # what a worker does when it starts


def is_loader(value: Value | None) -> bool:
    """Tell whether a value is a data loader of torch."""
    return (
        isinstance(value, Result)
        and value.receiver is None
        and value.maker.rsplit(".", 1)[-1] in LOADERS
    )


def is_trainer(value: Value | None) -> bool:
    """Tell whether a value is a trainer that loads a dataset itself."""
    return isinstance(value, Result) and "train_dataset" in value.kwargs


def settings_of(loader: Value) -> Mapping[str, Value]:
    """Return the arguments of a loader by the names that torch gives them."""
    if not isinstance(loader, Result):
        return {}
    if is_trainer(loader):
        return {"dataset": loader.kwargs["train_dataset"]}
    return {**dict(zip(SIGNATURE, loader.args, strict=False)), **loader.kwargs}


def draw(m: Machine, first: int) -> None:
    """Draw an example from each loader or trainer that was made since an event."""
    made = [e.result for e in m.events[first:] if not e.is_own]
    loaders = [value for value in made if is_loader(value) or is_trainer(value)]
    done = {id(x.loader) for x in m.examples}
    for loader in loaders[:MAX_EXAMPLES]:
        if isinstance(loader, Result) and id(loader) not in done:
            done.add(id(loader))
            m.examples.append(_drawn(m, loader))


def _drawn(m: Machine, loader: Result) -> Example:
    given = settings_of(loader)
    node = loader.site.node if loader.site is not None else ast.Pass()
    scope = names.file_scope(m, loader.site.module if loader.site is not None else m.main)
    m.forget_draws()
    value, events = _apart(m, lambda: _batch(m, given, node, scope))
    if isinstance(value, Items) and "collate_fn" not in given:
        loader.fields[EXAMPLE] = value
    loops = tuple(turn.loop for turn in m.drawn_in)
    sampler = given.get("sampler") or given.get("batch_sampler")
    _, order = _apart(m, lambda: None if sampler is None else _order(m, sampler, scope))
    length, _ = _apart(m, lambda: _length(m, given.get("dataset"), node, scope))
    _, start = _apart(m, lambda: _started(m, given.get("worker_init_fn"), node, scope))
    return Example(loader, value, events, order, loops, length, start)


def _started(m: Machine, init: Value | None, node: ast.AST, scope: Scope) -> Value | None:
    """Start a worker, whose number is not known."""
    if not isinstance(init, (FunctionValue, PartialCall, Instance)):
        return None
    return calls.call(m, init, (Unknown(name="worker_id"),), {}, node, scope)


def _length(m: Machine, dataset: Value | None, node: ast.AST, scope: Scope) -> Value | None:
    """Return what `len(dataset)` is, of a class of the project."""
    if not isinstance(dataset, Instance):
        return None
    method = names.find_method(m, dataset.cls, "__len__", dataset)
    return None if method is None else calls.call(m, method, (), {}, node, scope)


def _apart(
    m: Machine, run: Callable[[], Value | None]
) -> tuple[Value | None, tuple[ProgramEvent, ...]]:
    """Run something whose events and changes are no part of the program's own."""
    first, work, entered = len(m.events), m.work, set(m.entered)
    value: Value | None = None
    with _afresh(m), m.isolated():
        m.work = MAX_WORK - WORK
        try:
            value = run()
        except (OutOfWork, RecursionError):
            value = None
    events = tuple(m.events[first:])
    del m.events[first:]
    m.work, m.entered = work, entered
    return value, events


@contextmanager
def _afresh(m: Machine) -> Iterator[None]:
    """Be outside of all loops, conditions and contexts."""
    state = (m.turns, m.guards, m.contexts, m.callers, m.within, m.gradients, m.depth)
    active, tried = list(m.active), m.tried
    m.tried = None
    m.turns, m.guards, m.contexts, m.callers, m.within = (), (), (), (), ()
    m.gradients, m.depth = Answer.YES, 0
    try:
        yield
    finally:
        (m.turns, m.guards, m.contexts, m.callers, m.within, m.gradients, m.depth) = state
        m.active, m.tried = active, tried


def _batch(m: Machine, given: Mapping[str, Value], node: ast.AST, scope: Scope) -> Value | None:
    dataset, collate = given.get("dataset"), given.get("collate_fn")
    example = None if dataset is None else _one(item(m, dataset, node, scope))
    if not isinstance(collate, (FunctionValue, PartialCall, Instance)):
        return example
    rows = iteration.items_of([example or Unknown(name="example")], is_whole=False)
    return calls.call(m, collate, (rows,), {}, node, scope)


def _one(example: Value | None) -> Value | None:
    """Return one of several rows that are alike, as the turns of one comprehension are."""
    if not isinstance(example, Choice):
        return example
    first = example.options[0]
    is_row = isinstance(first, (Items, Table))
    is_alike = all(type(o) is type(first) and o.fields.keys() == first.fields.keys()
                   for o in example.options)  # fmt: skip
    return first if is_row and is_alike else example


def item(m: Machine, dataset: Value, node: ast.AST, scope: Scope, depth: int = 6) -> Value | None:
    """Return an example of a dataset; None where it is out of sight."""
    if depth == 0:
        return None
    if isinstance(dataset, Choice):
        found = [item(m, o, node, scope, depth - 1) for o in dataset.options]
        known = [f for f in found if f is not None]
        return Choice(tuple(known)) if len(known) == len(found) and known else None
    if isinstance(dataset, Part) and isinstance(dataset.of, Result) and dataset.of.maker in SPLITS:
        whole = dataset.of.args[0] if dataset.of.args else dataset.of.kwargs.get("dataset")
        return None if whole is None else item(m, whole, node, scope, depth - 1)
    if isinstance(dataset, Instance):
        return _own_item(m, dataset, node, scope, depth)
    if isinstance(dataset, Items):
        return iteration.element_of(m, dataset)
    return _library_item(m, dataset, node, scope, depth) if isinstance(dataset, Result) else None


def _own_item(
    m: Machine, dataset: Instance, node: ast.AST, scope: Scope, depth: int
) -> Value | None:
    length = names.find_method(m, dataset.cls, "__len__", dataset)
    if length is not None:
        calls.call(m, length, (), {}, node, scope)
    method = names.find_method(m, dataset.cls, "__getitem__", dataset)
    if method is not None:
        return calls.call(m, method, (Unknown(name=INDEX),), {}, node, scope)
    method = names.find_method(m, dataset.cls, "__iter__", dataset)
    if method is None:
        return None
    found = calls.call(m, method, (), {}, node, scope)
    if isinstance(found, Generator):
        return _first_of_stream(m, found)
    return iteration.element_of(m, iteration.wrapped(found))


def _first_of_stream(m: Machine, stream: Generator) -> Value | None:
    """Return the first example that a stream yields, and note in which loops it does."""
    found: list[Value] = []

    def take(value: Value) -> None:
        m.drawn_in = m.drawn_in if found else m.turns
        found.append(value)

    calls.run_generator(m, stream, take)
    return found[0] if found else None


def _library_item(
    m: Machine, dataset: Result, node: ast.AST, scope: Scope, depth: int
) -> Value | None:
    last = dataset.maker.rsplit(".", 1)[-1]
    index = Unknown(name=INDEX)
    if last == "TensorDataset":
        rows = [iteration.get_item(m, tensor, index) for tensor in dataset.args]
        return iteration.items_of(rows, "tuple")
    if last == "Subset" and dataset.args:
        return item(m, dataset.args[0], node, scope, depth - 1)
    if last in ("ConcatDataset", "ChainDataset") and dataset.args:
        parts = iteration.members(dataset.args[0])
        return None if not parts else item(m, Choice(tuple(parts)), node, scope, depth - 1)
    if dataset.maker == "operator.add":
        return item(m, Choice(dataset.args), node, scope, depth - 1)
    if "transform" in dataset.kwargs and last[:1].isupper():
        raw = Part(dataset, 0)
        transform = dataset.kwargs["transform"]
        is_none = isinstance(transform, Known) and transform.value is None
        image = raw if is_none else calls.call(m, transform, (raw,), {}, node, scope)
        return iteration.items_of((image, Part(dataset, 1)), "tuple")
    if dataset.maker == "builtins.zip":
        return iteration.element_of(m, dataset)
    return None


def _order(m: Machine, sampler: Value, scope: Scope) -> Value | None:
    """Let a sampler of the project's own give its indices."""
    if not isinstance(sampler, Instance):
        return None
    method = names.find_method(m, sampler.cls, "__iter__", sampler)
    found = None if method is None else calls.call(m, method, (), {}, sampler.cls.node, scope)
    return iteration.collected(m, found) if isinstance(found, Generator) else found
