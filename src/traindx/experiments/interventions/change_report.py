"""What the interventions of a process have to say, and where it is written."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any

MAX_NOTES = 20


class ChangeReport:
    """How often one intervention made a difference, and what there is to know about it."""

    def __init__(self) -> None:
        self.applied = 0
        self.notes: list[str] = []
        self.why_idle: list[str] = []  # what explains that there was nothing to change
        self.failed = ""

    def count(self, n: int = 1) -> None:
        """Say that it made a difference."""
        self.applied += int(n)

    def note(self, text: str) -> None:
        """Say something once."""
        if text not in self.notes and len(self.notes) < MAX_NOTES:
            self.notes.append(text)

    def note_if_idle(self, text: str) -> None:
        """Say something that matters only if it made no difference at all."""
        self.why_idle.append(text)

    def fail(self, error: BaseException) -> None:
        """Say that it did not work."""
        self.failed = self.failed or f"{type(error).__name__}: {error}"[:1000]

    def guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose first failure is told, and is its last call."""

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if self.failed:
                return None
            try:
                return function(*args, **kwargs)
            except Exception as error:  # the boundary to the user's program
                self.fail(error)
                return None

        return guarded


class ChangeReports:
    """The reports of a process by the names of the interventions."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder) if folder else ""
        self._by_name: dict[str, ChangeReport] = {}

    def of(self, name: str) -> ChangeReport:
        """Return the report of an intervention."""
        return self._by_name.setdefault(name, ChangeReport())

    def reset(self) -> None:
        """Begin anew in the child of a fork, which counts for itself."""
        for report in self._by_name.values():
            report.applied = 0

    def write(self) -> None:
        """Write the file of this process, as a whole or not at all."""
        if not self.folder or not self._by_name:
            return
        told: dict[str, dict[str, Any]] = {}
        for name, report in self._by_name.items():
            notes = report.notes + ([] if report.applied else report.why_idle)
            told[name] = {"applied": report.applied, "notes": notes}
            if report.failed:
                told[name]["failed"] = report.failed
        path = os.path.join(self.folder, f"interventions-{os.getpid()}.json")
        try:
            os.makedirs(self.folder, exist_ok=True)
            with open(path + ".part", "w", encoding="utf-8") as file:
                json.dump(told, file)
            os.replace(path + ".part", path)
        except OSError:
            return  # the folder may be gone; the program must not notice
