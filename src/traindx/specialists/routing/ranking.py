"""From concepts to specialists: how strongly each is called for, and in which order they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traindx.specialists.playbooks import NAMES
from traindx.specialists.routing.concepts import OBSERVED, TRIED, Mention
from traindx.specialists.routing.question import PLAIN, Hearing

ENOUGH = 2.0  # one thing of the trade that is done or wanted; a hint or a remedy alone is not
TELLING = 3.0  # a sign clear enough to come before what is merely done or wanted
SHARE = 0.3  # of the strongest: less is an aside
MOST = 4  # specialists in one answer
CAUSE = 4.0  # a cause that the detectors are sure of counts as much as an error message
UNANCHORED = 0.5  # slow or stuck, with no word on what


@dataclass(slots=True)
class Claim:
    """How strongly one specialist is called for, and by what."""

    specialist: str
    score: float = 0.0
    is_observed: bool = False
    mentions: list[Mention] = field(default_factory=list)


def weigh(hearing: Hearing, causes: Mapping[str, float]) -> dict[str, Claim]:
    """Return the claim of every specialist that anything speaks for."""
    claims: dict[str, Claim] = {}
    anchored = hearing.closeness >= PLAIN
    for mention in hearing.of_kind(*OBSERVED, *TRIED, "hint", "vague"):
        concept = mention.concept
        factor = UNANCHORED if concept.is_generic and not anchored else 1.0
        for specialist, weight in concept.weights.items():
            claim = claims.setdefault(specialist, Claim(specialist))
            claim.score += weight * factor
            claim.is_observed |= concept.kind in OBSERVED and weight >= TELLING
            claim.mentions.append(mention)
    best: dict[str, float] = {}
    for name, confidence in causes.items():
        specialist = specialist_of(name)
        best[specialist] = max(best.get(specialist, 0.0), confidence)
    for specialist, confidence in best.items():
        claim = claims.setdefault(specialist, Claim(specialist))
        claim.score += CAUSE * confidence
        claim.is_observed = True
    return claims


def specialist_of(cause: str) -> str:
    """Return whose field a cause is."""
    from traindx.causes import cause_named  # imports numpy, which plain questions do without

    return cause_named(cause).specialist


def chain_of(claims: Mapping[str, Claim], rules: Sequence[Mapping[str, str]]) -> list[Claim]:
    """Return the specialists that are called for, in the order to see them."""
    top = max((c.score for c in claims.values()), default=0.0)
    called = [c for c in claims.values() if c.score >= max(ENOUGH, SHARE * top)]
    called.sort(key=lambda c: (not c.is_observed, -c.score, NAMES.index(c.specialist)))
    chain = called[:MOST]
    for rule in rules:
        _apply(rule, chain)
    return chain


def reasons_for(chain: Sequence[Claim], rules: Sequence[Mapping[str, str]]) -> list[str]:
    """Return why neighbours in the chain come in this order, where a rule says so."""
    places = {c.specialist: place for place, c in enumerate(chain)}
    return [
        rule["because"]
        for rule in rules
        if _holds(rule, chain) and places[rule["first"]] + 1 == places[rule["then"]]
    ]


def _apply(rule: Mapping[str, str], chain: list[Claim]) -> None:
    if not _holds(rule, chain):
        return
    names = [c.specialist for c in chain]
    first, then = names.index(rule["first"]), names.index(rule["then"])
    if first > then:
        chain.insert(then, chain.pop(first))


def _holds(rule: Mapping[str, str], chain: Sequence[Claim]) -> bool:
    by_name = {c.specialist: c for c in chain}
    if rule["first"] not in by_name or rule["then"] not in by_name:
        return False
    wanted = rule.get("when")
    told = {m.concept.name for c in chain for m in c.mentions}
    return by_name[rule["first"]].is_observed if wanted is None else bool(told & set(wanted))
