"""Results that are kept for good, and what they are computed from that changes afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Instance,
    Items,
    Result,
    Site,
    Value,
    is_same,
    origins,
)
from traindx.analysis.program.syntax import Function, Module

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

DECORATORS = ("lru_cache", "cache", "cached_property")
CLEARS = (".cache_clear", ".clear", ".pop", ".popitem")
EXISTS = ("exists", "isfile", "is_file")
# what writes a file, and where its path and content stand
WRITES = {"torch.save": (1, 0), "numpy.save": (0, 1), "numpy.savez": (0, 1), "joblib.dump": (1, 0)}


@dataclass(frozen=True, eq=False)
class StaleCache:
    """A cache whose key leaves out what its entries are computed from."""

    site: Site  # what keeps them
    change: ProgramEvent  # where that gets another value
    name: str


def stale_caches(story: Story) -> Iterator[StaleCache]:
    """Yield the caches of a story that go on with what was computed before a change."""
    for memo in story.program.recall(_memos):
        for change in story.index.stored(*memo.read):
            if _changes(story, memo, change):
                yield StaleCache(Site(memo.module, memo.function), change, change.name)
                break
    yield from _files(story)


@dataclass(frozen=True, eq=False)
class _Memo:
    """A method that keeps what it returns, by its arguments or by a key of its own."""

    module: Module
    cls: ast.ClassDef
    function: Function
    keyed: frozenset[str]  # the attributes that are part of the key, and the cache itself

    @cached_property
    def read(self) -> frozenset[str]:
        """The attributes that its entries are computed from."""
        return _read_of_self(self.cls, self.function, self.keyed)


def _memos(program: Program) -> list[_Memo]:
    """Return the methods of the project that keep what they return, with each cache."""
    found: list[_Memo] = []
    for module in program.project.modules:
        for cls in module.classes.values():
            for node in (n for n in cls.body if isinstance(n, Function)):
                if any(_is_caching(module, d) for d in node.decorator_list):
                    found.append(_Memo(module, cls, node, frozenset()))
                else:
                    found.extend(_kept_by_key(module, cls, node))
    return found


def _is_caching(module: Module, decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = module.qualified(target) or ""
    return name.startswith("functools.") and name.rsplit(".", 1)[-1] in DECORATORS


def _kept_by_key(module: Module, cls: ast.ClassDef, function: Function) -> Iterator[_Memo]:
    """`if key not in self.kept: self.kept[key] = …`."""
    nodes = list(ast.walk(function))
    given = [n for n in nodes if isinstance(n, ast.Assign)]
    for target in (t for assign in given for t in assign.targets):
        cache = (
            _own_attribute(target.value, function) if isinstance(target, ast.Subscript) else None
        )
        if cache is None or not any(_asks(n, cache, function) for n in nodes):
            continue
        key = target.slice  # type: ignore[attr-defined]
        names = {n.id for n in ast.walk(key) if isinstance(n, ast.Name)}
        made = [a.value for a in given for t in a.targets if getattr(t, "id", "") in names]
        keyed = {n.attr for k in (key, *made) for n in ast.walk(k) if isinstance(n, ast.Attribute)}
        yield _Memo(module, cls, function, frozenset({cache, *keyed}))


def _asks(node: ast.AST, cache: str | None, function: Function) -> bool:
    """`key in self.kept`, `self.kept.get(key)`."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return _own_attribute(node.comparators[0], function) == cache
    is_got = isinstance(node, ast.Attribute) and node.attr == "get"
    return is_got and _own_attribute(node.value, function) == cache  # type: ignore[attr-defined]


def _own_attribute(node: ast.AST, function: Function) -> str | None:
    """Return the attribute of the object itself that an expression is: `kept` of `self.kept`."""
    first = function.args.args[0].arg if function.args.args else ""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return node.attr if is_own and node.value.id == first else None  # type: ignore[attr-defined]


def _read_of_self(cls: ast.ClassDef, function: Function, keyed: frozenset[str]) -> frozenset[str]:
    """Return the attributes that a method reads, itself and by the methods that it calls."""
    methods = {n.name: n for n in cls.body if isinstance(n, Function)}
    found: set[str] = set()
    pending, seen = [function], {function.name}
    while pending:
        node = pending.pop()
        names = {_own_attribute(n, node) for n in ast.walk(node) if _is_read(n)}
        found |= {n for n in names if n is not None}
        called = [methods[n] for n in names if n in methods and n not in seen]
        seen |= {n.name for n in called}
        pending.extend(called)
    return frozenset(found - methods.keys() - keyed)


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)


def _changes(story: Story, memo: _Memo, change: ProgramEvent) -> bool:
    """Tell whether an attribute gets another value in the course of training, and nothing clears.

    What the constructor or the method itself stores is there before, or is the cache.
    """
    owner = change.receiver
    if not isinstance(owner, Instance) or all(c.node is not memo.cls for c in owner.cls.lineage()):
        return False
    at = change.function
    if at is memo.function or getattr(at, "name", "") in ("__init__", "__post_init__"):
        return False
    is_again = any(not turn.loop.is_whole or turn.number for turn in change.turns)
    return is_again and not story.index.named(*CLEARS) and not _resets(story, memo)


def _resets(story: Story, memo: _Memo) -> bool:
    """Tell whether something else than the constructor makes the cache anew."""
    return any(
        e.function is not memo.function and e.function_name != "__init__"
        for e in story.index.stored(*memo.keyed)
    )  # fmt: skip


def _files(story: Story) -> Iterator[StaleCache]:
    """Yield files that are written once, in a loop over settings that their path leaves out."""
    for event in story.index.named(*WRITES):
        places = WRITES[event.name]
        if len(event.args) < 2 or not event.turns:
            continue
        path, content = event.args[places[0]], event.args[places[1]]
        if not _is_written_once(event, path) or not _is_one_path(story, event, places[0]):
            continue
        inside, named = list(origins(content, 600)), list(origins(path, 60))
        for turn in event.turns:
            settings = _elements(turn.loop.over)
            is_made_of = any(v is s for s in settings for v in inside)
            if is_made_of and not any(v is s for s in settings for v in named):
                yield StaleCache(event.site, event, "the setting of the loop")


def _is_one_path(story: Story, event: ProgramEvent, place: int) -> bool:
    """Tell whether a call writes to the same path whenever it is made."""
    again = (e for e in story.index.at(event.node) if len(e.args) > place)
    paths = [e.args[place] for e in again]
    return all(is_same(paths[0], other) for other in paths)


def _is_written_once(event: ProgramEvent, path: Value) -> bool:
    """Tell whether a file is only written where there is none by that path."""
    for guard in event.guards:
        for found in origins(guard.test, 8) if guard.test is not None else ():
            asked = found.inputs[:1] if isinstance(found, Result) else ()
            is_asked = isinstance(found, Result) and found.maker.rsplit(".", 1)[-1] in EXISTS
            if is_asked and any(a is path or is_same(a, path) for a in asked):
                return True
    return False


def _elements(over: Value | None) -> list[Value]:
    """What a loop goes over, one by one, and what these hold."""
    rows = over.members if isinstance(over, Items) else []
    return [v for row in rows for v in (row, *(row.members if isinstance(row, Items) else ()))]
