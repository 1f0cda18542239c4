"""Readers and detectors: how they are declared, found, and called.

A built-in that is broken fails loudly, for that is our bug. A plugin that is broken becomes a
`Failed` entry, for the user still wants the diagnosis.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from traindx.model.findings import (
    Evidence,
    Failed,
    Finding,
    Findings,
    Strength,
    cite,
    cite_event,
    cite_record,
    cite_setting,
    finding,
    suggested,
)
from traindx.model.former_names import present_name
from traindx.model.run import Run

__all__ = [  # with the words in which most rules speak, so that they need no other import
    "Detector",
    "Evidence",
    "Finding",
    "Findings",
    "Reader",
    "Run",
    "Strength",
    "cite",
    "cite_event",
    "cite_record",
    "cite_setting",
    "detector",
    "finding",
    "reader",
    "suggested",
]

DETECTOR = "traindx_detector"  # the mark of a rule
WRITTEN_NEEDS = re.compile(r"^@detector\(\s*needs=(\([^()]*\))", re.MULTILINE)
Check = Callable[[Run], Iterable[Finding]]
Sniff = Callable[[Path, bytes], float]
Read = Callable[[Path], Run]


@dataclass(frozen=True, slots=True)
class Detector:
    """A rule with the needs that select it; its name is the name of its file."""

    name: str
    check: Check
    needs: tuple[str, ...]
    suggests: tuple[str, ...]

    @property
    def title(self) -> str:
        return (self.check.__doc__ or "").strip().split("\n", 1)[0].rstrip(".")

    @property
    def doc(self) -> str:
        return self.check.__doc__ or ""

    @property
    def family(self) -> str:
        return self.check.__module__.rsplit(".", 2)[-2]


@dataclass(frozen=True, slots=True)
class Reader:
    """A format: `sniff` says how sure it is (0 to 1) from the head of a file, `read` reads it."""

    name: str
    sniff: Sniff
    read: Read


def detector(*, needs: tuple[str, ...], suggests: tuple[str, ...]) -> Callable[[Check], Check]:
    """Declare the decorated function as the rule of its module."""

    def declare(check: Check) -> Check:
        name = check.__module__.rsplit(".", 1)[-1].replace("_", "-")
        rule = _with_its_cause(check, suggests[0]) if len(suggests) == 1 else check
        rule.__dict__[DETECTOR] = Detector(name, rule, needs, suggests)
        return rule

    return declare


def _with_its_cause(check: Check, cause: str) -> Check:
    """Return a rule whose findings are about its one cause where they name none."""

    @wraps(check)
    def rule(run: Run) -> Findings:
        return (finding.about(cause) for finding in check(run))

    return rule


def reader(name: str, sniff: Sniff) -> Callable[[Read], Read]:
    """Declare the decorated function as the reader of a format."""

    def declare(read: Read) -> Read:
        read.__dict__["traindx_reader"] = Reader(name, sniff, read)
        return read

    return declare


@dataclass(frozen=True, slots=True)
class Discovered:
    """Everything of one kind that is installed, and the plugins that would not load."""

    items: tuple[Any, ...]
    failed: tuple[Failed, ...] = ()


@cache
def detectors() -> Discovered:
    """Find every detector: the built-in ones, then those of plugins."""
    return _discover("traindx.detectors", DETECTOR)


@dataclass(frozen=True, slots=True)
class Declared:
    """A detector by what its file says of it, imported when it is to look at a run.

    Most runs meet the needs of some detectors only: source those of one in three.
    """

    name: str
    needs: tuple[str, ...]
    load: Callable[[], Detector]


@cache
def declared_detectors() -> Discovered:
    """Find what `detectors` does, in the same order, and import only what it has to."""
    home = importlib.import_module("traindx.detectors")
    built_in = {d.name: d for found in _files(home) for d in _declared(*found)}
    failed: list[Failed] = []
    for found in _plugins("traindx.detectors", DETECTOR, failed):
        built_in.setdefault(found.name, _loaded(found))
    return Discovered(tuple(built_in.values()), tuple(failed))


def _declared(module: str, path: Path) -> Iterator[Declared]:
    """Yield what a file declares; where it does not say so plainly, it is imported."""
    needs = None if module in sys.modules else _written_needs(path)
    if needs is None:
        yield from map(_loaded, _marked(importlib.import_module(module), DETECTOR))
        return

    def load() -> Detector:
        return cast(Detector, next(_marked(importlib.import_module(module), DETECTOR)))

    yield Declared(path.stem.replace("_", "-"), needs, load)


def _loaded(detector: Detector) -> Declared:
    return Declared(detector.name, detector.needs, lambda: detector)


def _written_needs(path: Path) -> tuple[str, ...] | None:
    """Return the needs that stand in the decorator of a rule; None where they are not plain."""
    try:
        found = WRITTEN_NEEDS.findall(path.read_text(encoding="utf-8"))
        return tuple(ast.literal_eval(found[0])) if len(found) == 1 else None
    except (OSError, ValueError, SyntaxError):
        return None


def _files(package: ModuleType) -> Iterator[tuple[str, Path]]:
    """Yield the modules below a package with their files; one that has none need not exist."""
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not info.ispkg:
            folder = getattr(info.module_finder, "path", "")
            yield info.name, Path(folder, info.name.rpartition(".")[2] + ".py")


def detector_named(name: str) -> Detector | None:
    """Return the detector of a name, or of the name that it had before."""
    found: dict[str, Detector] = {d.name: d for d in detectors().items}
    return found.get(name) or found.get(present_name(name))


@cache
def readers() -> Discovered:
    """Find every reader: the built-in ones, then those of plugins."""
    return _discover("traindx.readers", "traindx_reader", home="traindx.readers.formats")


def _discover(group: str, mark: str, *, home: str | None = None) -> Discovered:
    """Find what the modules below `home` declare, then what plugins do in an entry-point group."""
    items: dict[str, Any] = {}
    failed: list[Failed] = []
    for module in _modules(importlib.import_module(home or group)):
        for item in _marked(module, mark):
            items[item.name] = item
    for item in _plugins(group, mark, failed):
        items.setdefault(item.name, item)
    return Discovered(tuple(items.values()), tuple(failed))


def _plugins(group: str, mark: str, failed: list[Failed]) -> Iterator[Any]:
    """Yield what plugins declare, and note those that would not load."""
    for plugin in entry_points(group=group):
        try:
            yield from _plugin_items(plugin, mark)
        except Exception as error:  # a stranger's plugin must not cost the user the diagnosis
            failed.append(Failed(plugin.name, f"plugin did not load: {error!r}"))


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    return (importlib.import_module(name) for name, _ in _files(package))


def _marked(module: Any, mark: str) -> Iterator[Any]:
    for value in list(vars(module).values()):
        item = getattr(value, mark, None) if callable(value) else None
        if item is not None and value.__module__ == module.__name__:
            yield item


def _plugin_items(plugin: EntryPoint, mark: str) -> list[Any]:
    loaded = plugin.load()
    item = getattr(loaded, mark, None)
    return [item] if item is not None else list(_marked(loaded, mark))
