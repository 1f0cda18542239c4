"""Going over things: lists that are written down, loaders, generators, and what wraps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import (
    batch_parts,
    calls,
    enumerations,
    mappings,
    module_listings,
    names,
)
from traindx.analysis.program.execution.events import LoopRun
from traindx.analysis.program.execution.machine import MISSING, TURNS, BlockEnd
from traindx.analysis.program.execution.values import (
    MAX_OPTIONS,
    Choice,
    ClassValue,
    Generator,
    Instance,
    Items,
    Known,
    Result,
    Scope,
    Table,
    Value,
    constant,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

COUNTED = ("counted",)  # the same, whatever the first number is
FIRST_NUMBER = ("first number",)  # the field that holds what `enumerate` counts from
NUMBERED = ("numbered",)  # the field of a running number that holds what is numbered
MAX_MEMBERS = 12  # of a list that is gone through one by one; of a longer one, two are
ONE_PASS = "iterator"  # the kind of what `map` and `(f(x) for x in xs)` give: gone over once
LONGEST = "maxlen"  # of a queue that drops its oldest members
MAX_TEXT = 200  # characters of a text that is a list of them
WRAPPERS = frozenset(
    {"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.trange", "tqdm.tqdm_notebook",
     "builtins.iter", "builtins.list", "builtins.tuple", "rich.progress.track", "builtins.reversed",
     "fastprogress.progress_bar", "builtins.sorted", "itertools.cycle", "itertools.islice",
     "alive_progress.alive_it", "progressbar.progressbar", "tqdm.autonotebook.tqdm",
     "itertools.chain", "torch.distributed.fsdp.tqdm"}
)  # fmt: skip


def items_of(values: Sequence[Value], kind: str = "list", *, is_whole: bool = True) -> Items:
    """Return a list or tuple of values."""
    return Items(kind, is_whole, held=dict(enumerate(values)))


def with_more(first: Sequence[Value], rest: Sequence[Value], kind: str = "list") -> Items:
    """Return a list that begins with known members, and goes on with some that stand for more."""
    made = items_of([*first, *rest], kind, is_whole=False)
    made.ahead = len(first)
    return made


def lengthened(m: Machine, first: Items, more: Value, *, is_in_place: bool) -> Items:
    """Return a list with others behind it, of which nobody knows how many: `specials + words`."""
    element, ahead = element_of(m, more), len(first.members)
    if not is_in_place:
        return with_more(first.members, [element], first.kind)
    append(m, first, element)
    first.is_whole, first.ahead = False, ahead
    return first


CONTAINERS = ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ParameterList")


def members(value: Value) -> list[Value] | None:
    """Return the members of a list that is written down; None where they are not known."""
    if is_container(value):
        return layers_of(value)
    if isinstance(value, Items) and value.is_whole:
        return value.members
    if isinstance(value, Table) and value.is_whole:
        return [k if isinstance(k, Value) else Known(k) for k in value.fields]
    if isinstance(value, Known) and isinstance(value.value, str):
        return [Known(c) for c in value.value] if len(value.value) <= MAX_TEXT else None
    return None


def layers_of(container: Value) -> list[Value] | None:
    """Return the layers that a container of torch was made of, and what was added since."""
    if not isinstance(container, Result):
        return [v for k, v in container.fields.items() if isinstance(k, int)] or None
    first = container.args[0] if len(container.args) == 1 else None
    if isinstance(first, (Items, Table)):
        return _replaced(list(first.fields.values()), container) if first.is_whole else None
    if first is not None and container.maker != "torch.nn.Sequential":
        return None
    if any(isinstance(a, Result) and a.maker == "operator.spread" for a in container.args):
        return None
    return _replaced(list(container.args), container)


def _replaced(layers: list[Value], container: Value) -> list[Value]:
    """Return layers with what was put in their places, `net[0] = layer`, and behind them."""
    for key, value in container.fields.items():
        if isinstance(key, int) and -len(layers) <= key < len(layers):
            layers[key] = value
        elif isinstance(key, int):
            layers.append(value)
    return layers


def sliced_layers(container: Value, key: Value) -> Value | None:
    """Return the container that a slice of one is: `self.layers[:-1]`; None where it is open."""
    layers = layers_of(container) if is_container(container) else None
    bounds = [constant(b) for b in key.inputs]
    are_known = all(isinstance(b, Known) for b in key.inputs)
    if layers is None or not are_known or not isinstance(container, Result):
        return None
    some = layers[slice(*(b if isinstance(b, int) else None for b in bounds))]
    args = tuple(some) if container.maker == "torch.nn.Sequential" else (items_of(some),)
    kept = {k: v for k, v in container.fields.items() if not isinstance(k, int)}
    return Result(container.maker, args=args, held=kept)


def is_container(value: Value) -> bool:
    """Tell whether a value is a list of layers or parameters that torch keeps."""
    return isinstance(value, Result) and value.maker in CONTAINERS and value.receiver is None


def seen_layers(container: Value) -> list[Value]:
    """Return the layers of a container that are in sight; a loop's turns stand for all of them."""
    found = layers_of(container)
    if found is not None or not isinstance(container, Result):
        return found or []
    given: list[Value] = []
    for arg in (*container.args, *(v for k, v in container.fields.items() if isinstance(k, int))):
        inner = arg.args[0] if isinstance(arg, Result) and arg.maker == "operator.spread" else arg
        given.extend(inner.fields.values() if isinstance(inner, (Items, Table)) else [inner])
    return given


def wrapped(value: Value) -> Value:
    """Return what a progress bar, iterator or the like goes over."""
    while isinstance(value, Result) and value.maker in WRAPPERS and value.args:
        value = value.args[0]
    return value


def run_over(
    m: Machine, loop: LoopRun, over: Value, body: Callable[[Value], BlockEnd], scope: Scope,
    most: int = MAX_MEMBERS,
) -> BlockEnd:  # fmt: skip
    """Run a loop's body for each element of what it goes over; of more than `most`, for two."""
    inner = wrapped(over)
    if isinstance(inner, Result) and inner.maker == "builtins.enumerate" and inner.args:
        numbered = inner
        return run_over(
            m, loop, inner.args[0], lambda v: body(_pair(index(numbered), v)), scope, most
        )
    if isinstance(inner, Result) and inner.maker == "builtins.zip":
        return _run_zip(m, loop, inner, body, scope)
    if isinstance(inner, Instance):
        inner = _iterator_of(m, inner, scope)
    if isinstance(inner, ClassValue):
        listed = enumerations.members(m, inner)
        inner = inner if listed is None else items_of(listed)
    if isinstance(inner, Generator):
        return _run_generator(m, loop, inner, body, scope)
    modules = module_listings.listed(inner) or batch_parts.parts_of(inner)
    found = _in_order(over, inner) if modules is None else modules
    if found is not None:
        loop.is_whole = True
        if len(found) > most and modules is None:
            loop.is_whole, found = False, found[:TURNS]
        return m.run_loop(loop, iter(found), _checked(body))
    if isinstance(over, Result) and over.maker == "builtins.sorted" and not over.args[1:]:
        inner = over  # its elements stand in an order
    return m.run_loop(loop, _unknown_elements(m, inner), _checked(body))


def _in_order(over: Value, inner: Value) -> list[Value] | None:
    """Return the members of a list in the order in which they are gone over."""
    found, turns = members(inner), 0
    while over is not inner and isinstance(over, Result) and over.maker in WRAPPERS and over.args:
        turns += over.maker == "builtins.reversed"
        over = over.args[0]
    return found[::-1] if found is not None and turns % 2 else found


def index(numbered: Result | None = None) -> Value:
    """The running number of `enumerate`; what it numbers, and from where, is kept beside it."""
    held: dict[object, Value] = {}
    if numbered is not None and numbered.args:
        over, first = numbered.args[0], numbered.kwargs.get("start", (*numbered.args, Known(0))[1])
        is_plain = len(numbered.args) == 1 and not numbered.kwargs
        held = {COUNTED: over, FIRST_NUMBER: first, **({NUMBERED: over} if is_plain else {})}
    return Result("builtins.next", args=(Result("builtins.range", held=held or None),))


def _pair(first: Value, second: Value) -> Value:
    return items_of((first, second), "tuple")


def _checked(body: Callable[[Value], BlockEnd]) -> Callable[[Value | None], BlockEnd]:
    def run(element: Value | None) -> BlockEnd:
        return BlockEnd.NEXT if element is None else body(element)

    return run


def _unknown_elements(m: Machine, over: Value) -> Iterator[Value]:
    known = over.members if isinstance(over, Items) else _seen_blocks(over)
    if isinstance(over, Items) and 0 < over.ahead <= MAX_MEMBERS:
        yield from known[: over.ahead + TURNS]
        return
    for turn in range(TURNS):
        yield known[turn % len(known)] if known else element_of(m, over)


def _seen_blocks(container: Value) -> list[Value]:
    """Return the layers in sight of a list of unknown length; two turns stand for all."""
    found = seen_layers(container) if is_container(container) else []
    return found if all(isinstance(layer, (Instance, Result)) for layer in found) else []


def element_of(m: Machine, over: Value) -> Value:
    """Return a new element of something: a batch of a loader, a number of a range."""
    if isinstance(over, Choice) and any(isinstance(o, Items) for o in over.options):
        found = [element_of(m, o) for o in over.options]
        return Choice(tuple(found))
    if isinstance(over, Items) and over.members:
        return over.members[0] if len(over.members) == 1 else Choice(tuple(over.members[:4]))
    if isinstance(over, Result) and over.maker == "builtins.enumerate" and over.args:
        return _pair(index(over), element_of(m, over.args[0]))
    if isinstance(over, Result) and over.maker == "builtins.zip":
        return items_of([element_of(m, a) for a in over.args], "tuple")
    if isinstance(over, Result) and over.maker in WRAPPERS and over.args:
        inner = element_of(m, over.args[0])
        is_plain = isinstance(inner, Result) and inner.maker == "builtins.next"
        if over.maker != "builtins.sorted" or not is_plain:
            return inner
    return Result("builtins.next", args=(over,), gradients=m.gradients)


def _run_zip(
    m: Machine, loop: LoopRun, over: Result, body: Callable[[Value], BlockEnd], scope: Scope
) -> BlockEnd:
    others = [a for a in over.args if not _is_counter(a)]
    if len(others) == 1 and len(over.args) > 1:  # a counter goes on as long as the other does

        def counted(value: Value) -> BlockEnd:
            row = [index() if _is_counter(a) else value for a in over.args]
            return body(items_of(row, "tuple"))

        return run_over(m, loop, others[0], counted, scope)
    lists = [_in_order(a, wrapped(a)) for a in over.args]
    if lists and all(x is not None for x in lists):
        rows = zip(*(x for x in lists if x is not None), strict=False)
        loop.is_whole = True
        tuples = [items_of(row, "tuple") for row in rows][:MAX_MEMBERS]
        return m.run_loop(loop, iter(tuples), _checked(body))
    rows_unknown = (
        items_of([element_of(m, wrapped(a)) for a in over.args], "tuple") for _ in range(TURNS)
    )
    return m.run_loop(loop, iter(rows_unknown), _checked(body))


def _is_counter(value: Value) -> bool:
    return isinstance(value, Result) and value.maker == "itertools.count" and not value.args


def _iterator_of(m: Machine, over: Instance, scope: Scope) -> Value:
    method = names.find_method(m, over.cls, "__iter__", over)
    if method is None:
        return mappings.entries_of(over) or over
    node = over.cls.node
    found = calls.call(m, method, (), {}, node, scope)
    if found is over or (isinstance(found, Instance) and found.cls is over.cls):
        return _stepper(m, over, scope)
    return wrapped(found)


def _stepper(m: Machine, over: Instance, scope: Scope) -> Value:
    """An object that is its own iterator: `__next__` gives its elements."""
    method = names.find_method(m, over.cls, "__next__", over)
    if method is None:
        return over
    found = [calls.call(m, method, (), {}, over.cls.node, scope) for _ in range(TURNS)]
    return items_of(found, is_whole=False)


class _Left(Exception):
    """The loop that consumes a generator was left."""

    def __init__(self, status: BlockEnd) -> None:
        super().__init__(status.value)
        self.status = status


def _run_generator(
    m: Machine, loop: LoopRun, made: Generator, body: Callable[[Value], BlockEnd], scope: Scope
) -> BlockEnd:
    """Run a generator function; at each yield the body of the loop runs."""
    count = 0

    def consume(value: Value) -> None:
        nonlocal count
        status = m.run_loop(loop, iter([value]), _checked(body), count)
        count += 1
        if status in (BlockEnd.RETURN, BlockEnd.RAISE, BlockEnd.BREAK):
            raise _Left(status)

    state = (m.turns, m.guards, m.contexts, m.gradients, m.callers, m.depth, list(m.active))
    try:
        calls.run_generator(m, made, consume)
    except _Left as left:
        (m.turns, m.guards, m.contexts, m.gradients, m.callers, m.depth, m.active) = state
        return left.status
    return BlockEnd.NEXT


def collected(m: Machine, made: Generator) -> Items:
    """Return what a generator yields, as far as it was seen."""
    found: list[Value] = []
    calls.run_generator(m, made, found.append)
    return items_of(found[:MAX_MEMBERS], is_whole=False)


def get_item(m: Machine, owner: Value, key: Value) -> Value:
    """Return an item of a value."""
    index = key.value if isinstance(key, Known) else None
    if isinstance(owner, Items) and isinstance(key, Known):
        if isinstance(index, int) and index < 0 and owner.is_whole:
            index += len(owner.fields)
        if index in owner.fields:
            return owner.fields[index]
    entry = mappings.item_of(m, owner, key)
    if entry is not None:
        return entry
    if isinstance(owner, Items) and owner.fields:
        return _any_member(owner)
    if isinstance(owner, Choice) and any(isinstance(o, (Items, Table)) for o in owner.options):
        found = tuple(get_item(m, o, key) for o in owner.options)
        return found[0] if len(found) == 1 else Choice(found)
    layers = members(owner) if isinstance(owner, Result) else None
    if layers is not None and isinstance(index, int) and -len(layers) <= index < len(layers):
        return layers[index]
    if layers and _is_index(key):
        return layers[0] if len(layers) == 1 else Choice(tuple(layers[:MAX_OPTIONS]))
    if isinstance(key, Known) and isinstance(index, (int, str)):
        held = owner.fields.get(index) if isinstance(owner, Result) else None
        return held or names.part(owner, index)
    return Result("operator.getitem", args=(owner, key), gradients=m.gradients)


def _is_index(key: Value) -> bool:
    """Tell whether a key that is not known picks one member: it is no slice."""
    is_slice = isinstance(key, Result) and key.maker == "builtins.slice"
    return not is_slice and not isinstance(key, (Known, Items))


def _any_member(owner: Items) -> Value:
    found = list(owner.fields.values())
    return found[0] if len(found) == 1 else Choice(tuple(found[:6]))


def set_item(m: Machine, owner: Value, key: Value, value: Value) -> None:
    """Store an item."""
    owner = mappings.entries_of(owner) or owner
    if isinstance(key, Known) and isinstance(key.value, (int, str, type(None))):
        m.write(owner.fields, key.value, value)
    elif isinstance(owner, Table):
        m.write(owner.fields, key, value)  # a tensor, a model: the key is the object itself
        owner.is_whole = False
    elif isinstance(owner, Items):
        m.write(owner.fields, ("some", id(value)), value)


def append(m: Machine, owner: Items, value: Value) -> None:
    """Add a member to a list; one that a loop of unknown length fills is not whole."""
    if m.is_repeated(owner.born):
        owner.is_whole = False
    m.write(owner.fields, _next_index(owner), value)


def insert(m: Machine, owner: Items, at: Value | None, value: Value) -> None:
    """Add a member at a place; at the end where that is not known."""
    place = _place(m, owner, at)
    append(m, owner, value)
    if place is not None:
        _renumber(m, owner, [*owner.members[:place], value, *owner.members[place:-1]])


def take_out(m: Machine, owner: Items, at: Value) -> Value:
    """Remove a member and return it; where it is not known which, all stay."""
    value = get_item(m, owner, at)
    place = _place(m, owner, at)
    if place is not None and place < len(owner.members):
        last = len(owner.members) - 1
        _renumber(m, owner, [*owner.members[:place], *owner.members[place + 1 :]])
        m.write(owner.fields, last, MISSING)
    elif m.is_repeated(owner.born):
        owner.is_whole = False
    return value


def _place(m: Machine, owner: Items, at: Value | None) -> int | None:
    """Return the place that an index means in a list of which every member is known."""
    count = len(owner.members)
    is_sure = owner.is_whole and list(owner.fields) == [*range(count)]
    if not is_sure or m.is_repeated(owner.born):
        return None
    index = at.value if isinstance(at, Known) else None
    if not isinstance(index, int) or not -count <= index <= count:
        return None
    return index + count if index < 0 else index


def _renumber(m: Machine, owner: Items, members: list[Value]) -> None:
    for place, value in enumerate(members):
        if owner.fields.get(place) is not value:
            m.write(owner.fields, place, value)


def _next_index(owner: Items) -> int:
    return 1 + max((k for k in owner.fields if isinstance(k, int)), default=-1)
