"""What an error's words mean: tables of wordings, and the finding that a known one makes.

A table is a tuple of `Message` rows in the order in which they are tried. The tables stand beside
this module, one file a subject; a rule asks `known_error` for the row that fits the failure of its
run, and `finding` for what to report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from traindx.analysis.errors.culprits import Culprit, explain, shape_of
from traindx.analysis.errors.root_failure import last_part, root_failure
from traindx.model.findings import Evidence, Finding, Strength, cite_event, suggested
from traindx.model.run import Event, Failure, Run

OTHERS = "left to another rule"  # the kind of a row that only keeps later rows from a wording

_OPTIONAL = re.compile(r"\[\[(.*?)\]\]")
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Message:
    """One wording of an error: a pattern with named groups, and what it says.

    A number at the end of a group's name tells alternatives apart: `got` and `got2` are both `got`.
    In the claim, `{got}` stands for what the group holds, ``[[ of {got}||text]]`` for the part
    before the bars where it holds something and for the part behind them where it does not. Causes
    are named by how strongly the wording speaks for them, several with blanks between. `types`
    limits the row to exceptions of those names.
    """

    pattern: str
    claim: str = ""
    shows: str | None = None
    strong: str = ""
    moderate: str = ""
    weak: str = ""
    types: str = ""
    kind: str = ""

    @property
    def suggests(self) -> dict[str, Strength]:
        return suggested(self.strong, self.moderate, self.weak)


Table = tuple[Message, ...]


def causes_in(table: Table) -> tuple[str, ...]:
    """Return the causes that the rows of a table show or suggest, each once."""
    named = ((*([row.shows] if row.shows else []), *row.suggests) for row in table)
    return tuple(dict.fromkeys(cause for causes in named for cause in causes))


@dataclass(frozen=True, slots=True)
class KnownError:
    """A failure whose wording a table knows; groups without a word read as empty."""

    run: Run
    failure: Failure
    message: Message
    words: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.words.get(name, "")

    @property
    def kind(self) -> str:
        return self.message.kind

    def number(self, name: str) -> int:
        return int(self[name])

    def shape(self, name: str) -> tuple[int, ...]:
        return shape_of(self[name])

    def claim(self, **more: str) -> str:
        """Return the claim with the groups and the given words filled in."""
        return fill(self.message.claim, {**self.words, **more})

    def note(self, says: str) -> list[Evidence]:
        """Return a remark on the message as evidence; none where there is nothing to say."""
        return [Evidence(says, self.failure.artifact, self.failure.locator)] if says else []


def fill(template: str, words: Mapping[str, str]) -> str:
    """Return a claim with its fields filled in, without the optional parts that lack a word."""

    def choose(part: re.Match[str]) -> str:
        wanted, _, otherwise = part[1].partition("||")
        is_there = all(words.get(name) for name in _FIELD.findall(wanted))
        return wanted if is_there else otherwise

    text = _OPTIONAL.sub(choose, template)
    return _FIELD.sub(lambda field: words.get(field[1], ""), text)


def read(text: str, table: Table, kind: str = "") -> tuple[Message, dict[str, str]] | None:
    """Return the first row that a text fits, with its words; `kind` is the exception's name."""
    for row in table:
        if row.types and kind not in row.types.split():
            continue
        found = _compiled(row.pattern).search(text)
        if found is not None:
            words = {n.rstrip("0123456789"): w for n, w in found.groupdict().items() if w}
            return row, words
    return None


def occurrences(text: str, row: Message) -> int:
    """Return how often a wording stands in a text."""
    return sum(1 for _ in _compiled(row.pattern).finditer(text))


def known_error(run: Run, table: Table, failure: Failure | None = None) -> KnownError | None:
    """Return what a table says of a failure; without one, of the failure to explain."""
    failure = failure or root_failure(run)
    if failure is None:
        return None
    found = read(failure.message, table, last_part(failure.type))
    if found is None or found[0].kind == OTHERS:
        return None
    return KnownError(run, failure, *found)


def events_saying(run: Run, table: Table) -> list[Event]:
    """Return the logged events whose text a table knows."""
    return [e for e in run.events if read(e.text, table) is not None]


def finding(
    known: KnownError,
    claim: str = "",
    *,
    cause: str | None = None,
    suggests: Mapping[str, Strength] | None = None,
    culprit: Culprit | None = None,
    notes: Iterable[Evidence] = (),
) -> Finding:
    """Return the finding that explains a known error: what its row says, unless said otherwise.

    Where a cause is shown, the guesses of the row are dropped. A claim may speak of ``{culprit}``.
    """
    said = {"culprit": culprit.says} if culprit is not None else {}
    row = known.message
    guesses = row.suggests if cause is None else {}
    return explain(
        known.run,
        known.failure,
        claim or known.claim(**said),
        shows=cause or (row.shows if suggests is None else None),
        suggests=guesses if suggests is None else suggests,
        culprit=culprit,
        notes=notes,
    )


def logged(
    event: Event,
    claim: str,
    *,
    cause: str | None = None,
    suggests: Mapping[str, Strength] | None = None,
) -> Finding:
    """Return the finding that a log's own word for a failure makes."""
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(cite_event(event),),
        suggests=dict(suggests or {}),
        shows=cause,
        is_symptom=True,
        onset=event.step,
    )


def findings(
    run: Run,
    table: Table,
    *,
    blame: Callable[[KnownError], Culprit | None] | None = None,
    words: Callable[[KnownError], Mapping[str, str]] | None = None,
    when: Callable[[KnownError], bool] | None = None,
) -> Iterator[Finding]:
    """Yield what a table says of the failure, with the line to blame and words for its claim."""
    known = known_error(run, table)
    if known is not None and (when is None or when(known)):
        claim = "" if words is None else known.claim(**words(known))
        yield finding(known, claim, culprit=None if blame is None else blame(known))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
