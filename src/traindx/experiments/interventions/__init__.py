"""Changes to a training program while it runs, for experiments; its files stay as they are.

Runs inside the copy of the user's program, loaded by path as the recorder is: standard library and
torch only. Each change is a module with `apply(values, report)`; it says how often it made a
difference, takes no number from the program's random generators, and never breaks the program.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import sys
from typing import Any

from .change_report import ChangeReport, ChangeReports

EARLY = ("guard", "seed")  # in place before the first import of the program

UNGUARDED = 70  # the exit code of a program that could not be guarded

_requests: list[tuple[str, dict[str, Any]]] = []
_done: set[int] = set()  # requests that are in place
reports = ChangeReports(os.environ.get("TRAINDX_RECORDING") or "")


def begin() -> None:
    """Read what is asked for, and put in place what cannot wait for torch."""
    text = os.environ.get("TRAINDX_INTERVENTIONS") or "[]"
    try:
        for asked in json.loads(text):
            _requests.append((str(asked["name"]), dict(asked.get("values") or {})))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        print(f"traindx: TRAINDX_INTERVENTIONS cannot be read: {error}", file=sys.stderr)
        return
    if not _requests:
        return
    atexit.register(reports.write)
    os.register_at_fork(after_in_child=reports.reset)
    _apply(EARLY)


def arm() -> None:
    """Put in place what changes torch; called once it is imported, before the recorder listens."""
    names = {name for name, _ in _requests}
    if not names:
        return
    from . import moments

    moments.install(reports)
    _apply(("seed",), again=True)
    _apply(tuple(names))


def settle(session: Any) -> None:
    """Stand in front of the recorder, whose session it is, where the order of calls matters."""
    if "traindx_interventions.moments" in sys.modules:
        from . import moments

        moments.settle(session)


def _apply(names: tuple[str, ...], *, again: bool = False) -> None:
    for number, (name, values) in enumerate(_requests):
        if name not in names or (number in _done and not again):
            continue
        _done.add(number)
        report = reports.of(name)
        try:
            module = importlib.import_module("." + name.replace("-", "_"), __name__)
            module.apply(values, report)
        except Exception as error:  # the boundary to the user's program
            report.fail(error)
            if name == "guard":  # without it, files of the user would be within reach
                os._exit(UNGUARDED)


__all__ = ["ChangeReport", "ChangeReports", "arm", "begin", "settle"]
