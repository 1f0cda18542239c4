"""What an experiment changes, and what a rerun came to: the values that its parts hand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Value = float | int | str | bool


@dataclass(frozen=True, slots=True)
class Intervention:
    """A change to the program while it runs, by the name of its module in `interventions`."""

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """One change to the user's command: interventions, or a diff of the source, or neither.

    `is_damping` marks a change that calms many kinds of instability whatever their cause, so that
    its success alone does not tell one cause from another. `remedy` says it as advice, with its
    values: what is proven is what is advised.
    """

    says: str = "as it is"
    interventions: tuple[Intervention, ...] = ()
    patch: str | None = None
    is_damping: bool = False
    remedy: str = ""

    def with_(self, other: Change) -> Change:
        """Return both changes as one."""
        patches = [p for p in (self.patch, other.patch) if p]
        return Change(
            says=other.says if self == AS_IT_IS else f"{self.says}; {other.says}",
            interventions=(*self.interventions, *other.interventions),
            patch="".join(patches) or None,
            is_damping=self.is_damping or other.is_damping,
            remedy=other.remedy,
        )


AS_IT_IS = Change()


@dataclass(frozen=True, slots=True)
class Limits:
    """When a rerun is stopped."""

    time_s: float
    steps: int | None = None
    is_recorded: bool = True  # else only what interventions write is known of it


@dataclass(frozen=True, slots=True)
class Rerun:
    """One rerun of the command on a copy, and how it ended.

    `stopped` is "steps" or "time" where a limit ended it, "user" for Ctrl-C, else empty. `applied`
    counts how often each intervention made a difference, by name; `redirected` names what the
    program wanted to write outside of its copy.
    """

    change: Change
    seed: int
    folder: Path  # its recording
    exit_code: int | None = None  # None: a signal ended it
    stopped: str = ""
    first_step_s: float | None = None  # from the start to the first optimizer step
    duration_s: float = 0.0
    applied: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what the interventions had to say
    redirected: tuple[str, ...] = ()
