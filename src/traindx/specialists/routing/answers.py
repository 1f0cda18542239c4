"""From a question to its answer: hear, weigh, then route, ask or refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traindx.specialists.playbooks import playbook_named
from traindx.specialists.routing.clarification import best_question
from traindx.specialists.routing.concepts import OBSERVED, TRIED, Mention
from traindx.specialists.routing.question import PLAIN, Hearing, hear
from traindx.specialists.routing.ranking import Claim, chain_of, reasons_for, specialist_of, weigh
from traindx.specialists.routing.routes import Route
from traindx.specialists.routing.suspects import suspects

STEPS_OF_THE_LEAD = 4
MOST_ARTIFACTS = 6
NOTHING_KNOWN: Mapping[str, float] = {}


def route(question: str, causes: Mapping[str, float] = NOTHING_KNOWN) -> Route:
    """Say which specialists a question needs, in which order and why; or ask; or decline.

    `causes` are what the detectors found in an error pasted with the question, by confidence.
    """
    hearing = hear(question)
    claims = weigh(hearing, causes)
    if _is_foreign(hearing, claims, causes):
        return Route((), _why_not_ours(hearing), heard=hearing.accounts())
    chain = [] if _is_open(hearing, claims, causes) else chain_of(claims, _order(hearing))
    if not chain:
        return _asked(hearing, claims)
    return Route(
        specialists=tuple(c.specialist for c in chain),
        why=_why(hearing, chain, causes),
        overrides=(*_proposals(hearing, chain), *_pressures(hearing)),
        first_steps=_first_steps(chain, causes),
        artifacts_wanted=_artifacts(chain),
        heard=hearing.accounts(),
        causes=tuple(causes),
        candidates=suspects(hearing, causes),
    )


def _order(hearing: Hearing) -> Sequence[Mapping[str, str]]:
    rules: Sequence[Mapping[str, str]] = hearing.lexicon.told["order"]
    return rules


def _is_foreign(hearing: Hearing, claims: Mapping[str, Claim], causes: Mapping[str, float]) -> bool:
    """Whether the question is not about training models."""
    if causes:
        return False
    if hearing.foreignness > 0 and hearing.foreignness >= hearing.closeness:
        return True
    if hearing.closeness >= PLAIN:
        return False
    said_something = bool(claims) or hearing.closeness > 0
    return not (said_something and hearing.is_all_understood)


def _is_open(hearing: Hearing, claims: Mapping[str, Claim], causes: Mapping[str, float]) -> bool:
    """Whether something is wrong, several fields are named, and nothing is said of what is seen."""
    if causes or not hearing.of_kind("vague"):
        return False
    named = {s for m in hearing.of_kind(*TRIED) for s in m.concept.weights}
    return not any(c.is_observed for c in claims.values()) and len(named) > 1


def _asked(hearing: Hearing, claims: Mapping[str, Claim]) -> Route:
    told = hearing.lexicon.told
    noticed = [m.concept.says for m in hearing.of_kind("vague", "hint", *OBSERVED, *TRIED)]
    about = f"The question speaks of {_listed(noticed)}" if noticed else "Training is meant"
    return Route(
        specialists=(),
        why=f"{about}, but that fits several specialists; the answer to one question decides.",
        overrides=_pressures(hearing),
        question=best_question(claims, told["questions"]),
        first_steps=tuple(told["meanwhile"]),
        heard=hearing.accounts(),
        candidates=suspects(hearing, NOTHING_KNOWN),
    )


def _why_not_ours(hearing: Hearing) -> str:
    topics = [m.concept.says for m in hearing.of_kind("elsewhere")]
    about = f"this is about {_listed(topics)}" if topics else "nothing in it speaks of training"
    return f"Not about training models: {about}. traindx diagnoses the training of neural networks."


def _why(hearing: Hearing, chain: Sequence[Claim], causes: Mapping[str, float]) -> str:
    sentences = []
    for place, claim in enumerate(chain):
        heard = [_told(hearing, m) for m in claim.mentions if m.concept.weights]
        heard += [f"the pasted error points to {c}" for c in _causes_of(claim, causes)]
        opening = "First" if place == 0 else "Then"
        sentences.append(f"{opening} {claim.specialist}: {_listed(heard)}.")
    sentences += [
        f"{reason[:1].upper()}{reason[1:]}." for reason in reasons_for(chain, _order(hearing))
    ]
    gone = sorted({m.concept.says for m in hearing.denied})
    if gone:
        sentences.append(f"Set aside, for the question says it is not so: {_listed(gone)}.")
    return " ".join(sentences)


def _told(hearing: Hearing, mention: Mention) -> str:
    return f'{mention.concept.says} ("{hearing.quoted(mention)}")'


def _causes_of(claim: Claim, causes: Mapping[str, float]) -> list[str]:
    return [name for name in causes if specialist_of(name) == claim.specialist]


def _proposals(hearing: Hearing, chain: Sequence[Claim]) -> tuple[str, ...]:
    """What the question proposes before anything is known."""
    lead = next((claim for claim in chain if claim.is_observed), None)
    if lead is None:
        return ()
    unsettled = playbook_named(lead.specialist).unsettled
    return tuple(
        f"the question proposes {m.concept.says}; {unsettled}"
        for m in hearing.of_kind(*TRIED)
        if (m.concept.kind == "remedy" or lead.specialist not in m.concept.weights)
        and hearing.is_wished(m)
    )


def _pressures(hearing: Hearing) -> tuple[str, ...]:
    return tuple(m.concept.says for m in hearing.of_kind("pressure"))


def _first_steps(chain: Sequence[Claim], causes: Mapping[str, float]) -> tuple[str, ...]:
    lead = chain[0]
    own = [m.concept.step for m in lead.mentions if m.concept.step]
    explained = [f"read `traindx explain {name}`" for name in _causes_of(lead, causes)[:1]]
    known = playbook_named(lead.specialist).first_steps
    steps = [*explained, *own, *known][: STEPS_OF_THE_LEAD + len(explained)]
    later = [
        f"then {c.specialist}: {playbook_named(c.specialist).first_steps[0]}" for c in chain[1:]
    ]
    return tuple(dict.fromkeys([*steps, *later]))


def _artifacts(chain: Sequence[Claim]) -> tuple[str, ...]:
    wanted = (a for c in chain for a in playbook_named(c.specialist).artifacts_wanted)
    return tuple(dict.fromkeys(wanted))[:MOST_ARTIFACTS]


def _listed(parts: Sequence[str]) -> str:
    unique = list(dict.fromkeys(parts))
    if len(unique) < 2:
        return "".join(unique)
    return f"{', '.join(unique[:-1])} and {unique[-1]}"
