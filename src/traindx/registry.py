"""Readers and detectors: how they are declared, found, and called.

A built-in that is broken fails loudly, for that is our bug. A plugin that is broken becomes a
`Failed` entry, for the user still wants the diagnosis.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from traindx.model.findings import (
    Failed,
    Finding,
    Findings,
    Strength,
    cite,
    cite_record,
    finding,
    suggested,
)
from traindx.model.former_names import present_name
from traindx.model.run import Run

__all__ = [  # with the words in which most rules speak, so that they need no other import
    "Detector",
    "Finding",
    "Findings",
    "Reader",
    "Run",
    "Strength",
    "cite",
    "cite_record",
    "detector",
    "finding",
    "reader",
    "suggested",
]

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
        check.__dict__["traindx_detector"] = Detector(name, check, needs, suggests)
        return check

    return declare


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
    return _discover("traindx.detectors", "traindx_detector")


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
    for plugin in entry_points(group=group):
        try:
            for item in _plugin_items(plugin, mark):
                items.setdefault(item.name, item)
        except Exception as error:  # a stranger's plugin must not cost the user the diagnosis
            failed.append(Failed(plugin.name, f"plugin did not load: {error!r}"))
    return Discovered(tuple(items.values()), tuple(failed))


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not info.ispkg:
            yield importlib.import_module(info.name)


def _marked(module: Any, mark: str) -> Iterator[Any]:
    for value in list(vars(module).values()):
        item = getattr(value, mark, None) if callable(value) else None
        if item is not None and value.__module__ == module.__name__:
            yield item


def _plugin_items(plugin: EntryPoint, mark: str) -> list[Any]:
    loaded = plugin.load()
    item = getattr(loaded, mark, None)
    return [item] if item is not None else list(_marked(loaded, mark))
