"""The catalogue of causes: one module per family, each a tuple named CAUSES.

The names are a contract; they stand in JSON, reports, docs and tests exactly as here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import lru_cache

from traindx.causes.cause import Cause
from traindx.errors import UnknownName

__all__ = ["Cause", "all_causes", "cause_named"]


@lru_cache(maxsize=None)
def all_causes() -> Mapping[str, Cause]:
    """Return every cause by its name."""
    causes: dict[str, Cause] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        causes.update({cause.name: cause for cause in getattr(module, "CAUSES", ())})
    return causes


def cause_named(name: str) -> Cause:
    """Return the cause of that name."""
    try:
        return all_causes()[name]
    except KeyError:
        raise UnknownName(f"no cause is called {name!r}. Try: traindx explain --list") from None
