"""The catalogue of causes: one module per family, each a tuple named CAUSES.

The names are a contract; they stand in JSON, reports, docs and tests exactly as here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from traindx.causes.cause import Cause
from traindx.errors import UnknownName

__all__ = ["Cause", "Family", "all_causes", "cause_named", "consequences_of", "families"]


@dataclass(frozen=True, slots=True)
class Family:
    """Causes that belong together; its name is the name of its module."""

    name: str
    what: str
    causes: tuple[Cause, ...]


@cache
def families() -> tuple[Family, ...]:
    """Return every family with its causes, by name."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        causes = tuple(getattr(module, "CAUSES", ()))
        if causes:
            found.append(Family(info.name.replace("_", " "), module.__doc__ or "", causes))
    return tuple(sorted(found, key=lambda family: family.name))


@cache
def all_causes() -> Mapping[str, Cause]:
    """Return every cause by its name."""
    return {cause.name: cause for family in families() for cause in family.causes}


def cause_named(name: str) -> Cause:
    """Return the cause of that name."""
    try:
        return all_causes()[name]
    except KeyError:
        raise UnknownName(f"no cause is called {name!r}. Try: traindx explain --list") from None


@cache
def consequences_of(name: str) -> frozenset[str]:
    """Return what a cause brings about, at once or through one of its consequences."""
    direct = cause_named(name).brings_about
    return frozenset(direct).union(*(consequences_of(effect) for effect in direct))
