"""What a cause is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from traindx.model.findings import Remedy, Severity
from traindx.model.run import Run

Facts = Mapping[str, str]

DEBUGGING = "debugging-techniques"
MEMORY = "tensor-operations-and-memory"
DISTRIBUTED = "distributed-training-strategies"
PERFORMANCE = "performance-profiling"
PRECISION = "mixed-precision-and-optimization"
CHECKPOINTS = "checkpointing-and-reproducibility"
MODULES = "module-design-patterns"
AUTOGRAD = "custom-autograd-functions"
DATA = "data-pipeline-validation"


@dataclass(frozen=True, slots=True)
class Ask:
    """A way to settle a cause; `meets` is the need that it meets: whoever has that is not asked."""

    how: str
    meets: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """A named state of the world that explains findings.

    `title` states the fault in one sentence; `what` says how it comes about, how it looks and what
    it is mistaken for. `brings_about` names the causes that follow from this one and are then no
    root causes of their own. `confirm_by` asks for artifacts or experiments, any of which settles
    it. `tailor` reads facts from the run (the learning rate in use, the key it was set by) that
    fill the braces in title and remedies, so that a fix names the user's own values; `defaults`
    fill them otherwise. `only_harms` begins the words for the only trouble that this cause makes:
    in a run that suffers from something else it is a remark and no root cause.
    """

    name: str
    title: str
    what: str
    severity: Severity
    specialist: str
    remedies: tuple[Remedy, ...]
    confirm_by: tuple[Ask, ...]
    brings_about: tuple[str, ...] = ()
    defaults: Facts | None = None
    tailor: Callable[[Run], Facts] | None = None
    only_harms: tuple[str, ...] = ()

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

    def confirm_in(self, run: Run) -> str:
        """Return what would settle this cause, without what the run has already."""
        asked = (a.how for a in self.confirm_by if not (a.meets and run.has(a.meets)))
        return ", or ".join(asked)

    def _facts(self, run: Run) -> dict[str, str]:
        facts = dict(self.defaults or {})
        if self.tailor is not None:
            facts.update(self.tailor(run))
        return facts
