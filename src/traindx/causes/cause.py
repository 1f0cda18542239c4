"""What a cause is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from traindx.evidence import Remedy, Severity
from traindx.model import Run

Facts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cause:
    """A named state of the world that explains findings.

    `brings_about` names the causes and symptoms' causes that follow from this one and are then no
    root causes of their own. `confirm_by` is the one artifact or experiment that would settle it.
    `tailor` reads facts from the run (the learning rate in use, the key it was set by) that fill the
    braces in the remedies, so that a fix names the user's own values; `defaults` fill them otherwise.
    """

    name: str
    title: str
    what: str
    severity: Severity
    specialist: str
    remedies: tuple[Remedy, ...]
    confirm_by: str
    brings_about: tuple[str, ...] = ()
    defaults: Facts | None = None
    tailor: Callable[[Run], Facts] | None = None

    def issue_in(self, run: Run) -> str:
        """Return the one-sentence statement of this cause for a run."""
        return self.title.format_map(self._facts(run))

    def remedies_for(self, run: Run) -> tuple[Remedy, ...]:
        """Return the remedies with the run's own values filled in."""
        facts = self._facts(run)
        return tuple(
            replace(
                remedy,
                change=remedy.change.format_map(facts),
                expected_effect=remedy.expected_effect.format_map(facts),
                verify=remedy.verify.format_map(facts),
                if_it_fails=remedy.if_it_fails.format_map(facts),
            )
            for remedy in self.remedies
        )

    def _facts(self, run: Run) -> dict[str, str]:
        facts = dict(self.defaults or {})
        if self.tailor is not None:
            facts.update(self.tailor(run))
        return facts
