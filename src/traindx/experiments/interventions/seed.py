"""Fixes the random generators, and moves the seeds that the program sets itself.

Two reruns with the same seed see the same numbers; another seed gives other ones even to a program
that seeds itself. A `torch.Generator` that the program seeds is left as it is.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import random
import sys
from collections.abc import Callable
from typing import Any

from .change_report import ChangeReport

APART = 10_007  # the seeds of neighbouring ranks
_LIMIT = 2**32  # numpy takes no larger ones
_ARGUMENTS = ("seed", "a")
_moved: set[str] = set()  # functions that are replaced


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Seed what is imported; called at the start, and again once torch is there."""
    seed = int(values.get("seed", 0))
    offset = int(values.get("offset", seed))
    seed += APART * _rank()
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    is_late = hasattr(torch, "manual_seed")
    if "random" not in _moved:
        random.seed(seed)
        _move("random", random, "seed", seed, offset, report)
    if not is_late:
        return
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed(seed % _LIMIT)
        _move("numpy", numpy.random, "seed", seed, offset, report)
        _move("default_rng", numpy.random, "default_rng", seed, offset, report)
    else:
        report.note("numpy is not imported; its generators are not seeded")
    if torch is not None and "torch" not in _moved:
        torch.manual_seed(seed)
        _move("torch", torch, "manual_seed", seed, offset, report)
        torch.random.manual_seed = torch.manual_seed
        _fix_torch_seed(torch, seed)
    report.count()


def _fix_torch_seed(torch: Any, seed: int) -> None:
    """Let `torch.seed`, which asks for chance, give the seed."""

    def fixed() -> int:
        torch.default_generator.manual_seed(seed)
        return seed

    torch.seed = torch.random.seed = fixed


def _move(key: str, owner: Any, name: str, seed: int, offset: int, report: ChangeReport) -> None:
    """Let a seeding function add the offset, and take our seed where chance is asked for."""
    if key in _moved:
        return
    _moved.add(key)
    original: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(original)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        named = next((n for n in _ARGUMENTS if n in kwargs), "")
        wanted = args[0] if args else kwargs.pop(named, None)
        rest = args[1:]
        if wanted is None:
            return original(seed % _LIMIT, *rest, **kwargs)
        if type(wanted) is bool or not hasattr(wanted, "__index__"):
            return original(wanted, *rest, **kwargs)  # a string, a generator: as it is
        moved = wanted.__index__() + offset
        if offset:
            report.note("the seeds that the program sets are moved")
        is_small = name in ("default_rng",) or owner.__name__.startswith("numpy")
        return original(moved % _LIMIT if is_small else moved, *rest, **kwargs)

    setattr(owner, name, seeded)


def _rank() -> int:
    """Return a number that differs between ranks: without a seed of their own, they differ too."""
    if os.environ.get("RANK", "").isdigit():
        return int(os.environ["RANK"])
    digits = "".join(c for c in multiprocessing.current_process().name if c.isdigit())
    return int(digits) if digits else 0
