"""What counts as caught, named and falsely accused, by one rule for everybody.

An *alarm* is any message of the level warning or worse. On a faulty program it is a *catch* if the
same peer does not raise it on the program without the fault. It *names* the cause if what it says
fits the words for the true cause (or one accepted in its place) in the one table that all share;
it *mentions* it if that only holds with its list of further causes and advice. On a healthy run
every alarm is *false*, unless it names a fault that was put in and proved too weak to matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from bench.accuracy.incidents import Incident
from bench.peers.naming import names

NUMBERS = re.compile(r"[-+]?\d[\d.,e+-]*|\b(?:nan|inf)\b", re.IGNORECASE)


class Status(Enum):
    """How the use of a peer on one program went."""

    USED = "used"
    NOT_APPLICABLE = "not applicable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Alarm:
    """A message of the level warning or worse: its rule, what it says, and what it adds to that."""

    rule: str
    says: str
    adds: str = ""
    causes: tuple[str, ...] = ()  # where a tool names causes by their identifiers

    @property
    def key(self) -> str:
        """Return what is the same where the same alarm is raised on another run."""
        return self.rule or NUMBERS.sub("#", self.says)[:200]


def distinct(alarms: Iterable[Alarm]) -> tuple[Alarm, ...]:
    """Return alarms without those that only repeat another at a later step."""
    kept: dict[tuple[str, str], Alarm] = {}
    for alarm in alarms:
        kept.setdefault((alarm.key, NUMBERS.sub("#", alarm.says)), alarm)
    return tuple(kept.values())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a peer made of one program."""

    peer: str
    incident: str
    status: Status
    alarms: tuple[Alarm, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome judged against the truth."""

    outcome: Outcome
    is_healthy: bool
    is_caught: bool = False
    is_named: bool = False
    is_mentioned: bool = False
    is_false_alarm: bool = False


def judge(incident: Incident, outcome: Outcome, original: Outcome | None) -> Verdict:
    """Judge what a peer said of an incident, given what it says without the fault."""
    if outcome.status is not Status.USED:
        return Verdict(outcome, incident.is_healthy)
    if incident.is_healthy:
        injected = {incident.injected} if incident.injected else set()
        accused = any(not _names(a, injected, with_advice=True) for a in outcome.alarms)
        return Verdict(outcome, is_healthy=True, is_false_alarm=accused)
    usual = {a.key for a in original.alarms} if original else set()
    new = [a for a in outcome.alarms if a.key not in usual]
    return Verdict(
        outcome,
        is_healthy=False,
        is_caught=bool(new),
        is_named=any(_names(a, incident.accepted) for a in new),
        is_mentioned=any(_names(a, incident.accepted, with_advice=True) for a in new),
    )


def _names(alarm: Alarm, causes: Iterable[str], *, with_advice: bool = False) -> bool:
    if alarm.causes:
        return bool(set(alarm.causes) & set(causes))
    return names(f"{alarm.says}\n{alarm.adds}" if with_advice else alarm.says, causes)


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one peer."""

    faulty: int
    caught: int
    named: int
    mentioned: int
    healthy: int
    false_alarms: int
    failed: int
    not_applicable: int
    reasons: Mapping[str, int]


def count(verdicts: Iterable[Verdict]) -> Counts:
    """Count over the programs that a peer could be used on."""
    every = list(verdicts)
    used = [v for v in every if v.outcome.status is Status.USED]
    reasons: dict[str, int] = {}
    for verdict in every:
        if verdict.outcome.why:
            reasons[verdict.outcome.why] = reasons.get(verdict.outcome.why, 0) + 1

    def having(status: Status) -> int:
        return sum(v.outcome.status is status for v in every)

    def total(is_so: Callable[[Verdict], bool]) -> int:
        return sum(is_so(v) for v in used)

    return Counts(
        faulty=total(lambda v: not v.is_healthy),
        caught=total(lambda v: v.is_caught),
        named=total(lambda v: v.is_named),
        mentioned=total(lambda v: v.is_mentioned),
        healthy=total(lambda v: v.is_healthy),
        false_alarms=total(lambda v: v.is_false_alarm),
        failed=having(Status.FAILED),
        not_applicable=having(Status.NOT_APPLICABLE),
        reasons=reasons,
    )
