"""The language-model specialist: it works through the same evidence; its quotes are checked.

Whatever goes wrong, the engine's diagnosis stands; why there is no more than that is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traindx.agent import conversation, prompt
from traindx.agent.artifact_access import ArtifactAccess
from traindx.agent.belief import Ruling, disagreements, merge, rule_on
from traindx.agent.citations import Verifier
from traindx.agent.conversation import Conversation, Reply, Spent
from traindx.agent.lookup import Lookup
from traindx.agent.quotes import Quoter
from traindx.agent.schema import MalformedAnswer, SpecialistAnswer, parse_answer
from traindx.errors import MissingExtra
from traindx.model.findings import Diagnosis
from traindx.model.run import Run

if TYPE_CHECKING:
    pass

DEFAULT_MAX_TURNS = 20
LEAST_TIME_S = 1.0  # below this not even a connection is worth a try


@dataclass(frozen=True, slots=True)
class Consultation:
    """What came of asking the specialist: the diagnosis to report, and how it came about.

    Without an answer the diagnosis is the engine's, and `note` says why.
    """

    diagnosis: Diagnosis
    engine: Diagnosis
    answer: SpecialistAnswer | None = None
    rulings: tuple[Ruling, ...] = ()
    disagreements: tuple[str, ...] = ()
    note: str = ""
    refused: tuple[str, ...] = ()
    model: str = ""
    spent: Spent = field(default_factory=Spent)


def consult(
    run: Run,
    engine: Diagnosis,
    *,
    texts: Mapping[str, str] | None = None,
    model: str | None = None,
    max_turns: int = DEFAULT_MAX_TURNS,
    max_time_s: float = 300.0,
    tell: Callable[[str], None] = lambda label: None,
) -> Consultation:
    """Ask the specialist about a run, starting from the engine's diagnosis of it.

    `texts` holds artifacts that are no files, such as what came on standard input.
    """
    why_not = _unavailable(max_time_s)
    if why_not:
        return Consultation(engine, engine, note=why_not)
    lookup = Lookup(run, texts or {})
    reading = ArtifactAccess(lookup, Quoter())
    talk = Conversation(
        prompt.system_prompt(reading.quoter), reading.tools(), max_turns, model, tell
    )
    opening = prompt.opening(reading, engine, run.symptoms)
    answer, note = _held(talk, opening, max_time_s)
    rulings = rule_on(answer, Verifier(lookup, engine)) if answer is not None else ()
    return Consultation(
        diagnosis=merge(run, engine, rulings) if answer is not None else engine,
        engine=engine,
        answer=answer,
        rulings=rulings,
        disagreements=tuple(disagreements(engine, rulings)) if answer is not None else (),
        note=note,
        refused=tuple(talk.refused),
        model=talk.model_used or model or "",
        spent=talk.spent,
    )


def _unavailable(max_time_s: float) -> str:
    try:
        import claude_agent_sdk  # noqa: F401
    except ImportError:
        return str(MissingExtra("the specialist", "agent"))
    if not conversation.has_key(os.environ):
        return f"the specialist needs a key: set {conversation.KEYS[0]}"
    if max_time_s < LEAST_TIME_S:
        return "no time was left for the specialist; allow more with --max-time"
    return ""


def _held(
    talk: Conversation, opening: str, max_time_s: float
) -> tuple[SpecialistAnswer | None, str]:
    """Hold the conversation and return its answer, or why there is none."""
    import anyio

    try:
        with conversation.timed(talk.spent):
            return anyio.run(_within, talk, opening, max_time_s)
    except Exception as error:  # whatever the SDK raises, the engine's diagnosis is due
        return None, f"the specialist failed: {type(error).__name__}: {str(error)[:300]}"


async def _within(
    talk: Conversation, opening: str, max_time_s: float
) -> tuple[SpecialistAnswer | None, str]:
    import anyio
    import claude_agent_sdk

    with conversation.prepared(talk) as options:
        client = claude_agent_sdk.ClaudeSDKClient(options)
        try:
            with anyio.move_on_after(max_time_s):
                with conversation.without_shadow_warning():
                    await client.connect()
                return await _concluded(talk, client, await talk.ask(client, opening))
            await conversation.hush(client)
        finally:
            await client.disconnect()
    return None, f"the specialist had not answered after {max_time_s:.0f} s"


async def _concluded(
    talk: Conversation, client: object, first: Reply
) -> tuple[SpecialistAnswer | None, str]:
    """Return the answer; a malformed one gets one more turn, and so does one that is overdue."""
    from claude_agent_sdk import ClaudeSDKClient

    assert isinstance(client, ClaudeSDKClient)
    if first.problem and not first.is_out_of_turns:
        return None, f"the specialist cannot be reached: {first.problem}"
    limit = f"the specialist had not answered after {talk.max_turns} turns"
    problems: tuple[str, ...] = ()
    if not first.is_out_of_turns:
        try:
            return parse_answer(first.text), ""
        except MalformedAnswer as error:
            problems = error.problems
    if talk.turns_left < 1:
        return None, limit if first.is_out_of_turns else _malformed(problems)
    message = prompt.closing() if first.is_out_of_turns else prompt.repair(problems)
    second = await talk.ask(client, message, once=True)
    try:
        answer = parse_answer(second.text)
    except MalformedAnswer as error:
        if first.is_out_of_turns:
            return None, limit
        return None, _malformed((second.problem,) if second.problem else error.problems)
    return answer, "it answered at its turn limit, from what it had seen" * first.is_out_of_turns


def _malformed(problems: tuple[str, ...]) -> str:
    return f"the specialist's answer could not be read: {'; '.join(problems[:2])}"
