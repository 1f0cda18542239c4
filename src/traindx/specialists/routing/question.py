"""What a question says: the concepts it affirms, those it denies, and whether it is ours at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from traindx.specialists.routing.clauses import NEGATION, Word
from traindx.specialists.routing.concepts import OBSERVED, TRIED, Lexicon, Mention, lexicon
from traindx.specialists.routing.routes import Heard
from traindx.specialists.routing.sections import split_sections

WITHOUT, OVERCOME, ASKED_HOW = "without", "overcome", "how"
NEGATION_REACH = 3  # words between "no" and what it denies, past the ignored ones
OVERCOME_REACH = 4
FARTHEST = 12  # words of any kind that are looked at for a denial
WISHES = ("proposal", "authority")
WISH_REACH, AFTERTHOUGHT_REACH = 8, 3  # "should we use it", "it should help"
SPECIFIC, FOREIGN = 2.0, 2.0  # an expression of the trade counts as two of its plain words
PLAIN, COMMON = 1.0, 0.5
LONGEST_QUOTE = 60
LONGEST_READ = 10_000  # characters from either end; a long post is a tenth of that


@dataclass(frozen=True)
class Hearing:
    """A question's words and what they speak of."""

    text: str
    words: tuple[Word, ...]
    affirmed: tuple[Mention, ...]
    denied: tuple[Mention, ...]
    lexicon: Lexicon

    def of_kind(self, *kinds: str) -> list[Mention]:
        """Return what is affirmed of some kinds, each concept once."""
        first: dict[str, Mention] = {}
        for mention in self.affirmed:
            if mention.concept.kind in kinds:
                first.setdefault(mention.concept.name, mention)
        return list(first.values())

    def quoted(self, mention: Mention) -> str:
        """Return the words that a mention consists of, as they were written."""
        own = [self.words[place] for place in mention.places]
        passage = self.text[own[0].start : own[-1].end]
        if len(passage) > LONGEST_QUOTE:
            passage = " … ".join(self.text[w.start : w.end] for w in own)
        return " ".join(passage.split())

    @cached_property
    def closeness(self) -> float:
        """How much in the question belongs to the training of models."""
        own = [m for m in self.affirmed + self.denied if m.concept.kind in OBSERVED + TRIED]
        specific = {m.concept.name for m in own if not m.concept.is_generic}
        foreign = [m for m in self.affirmed if m.concept.kind == "elsewhere"]
        theirs = {place for m in foreign for place in m.places}
        said = {w.word for at, w in enumerate(self.words) if at not in theirs}
        plain = PLAIN * len(said & self.lexicon.domain)
        return SPECIFIC * len(specific) + plain + COMMON * len(said & self.lexicon.nearby)

    @cached_property
    def foreignness(self) -> float:
        """How much in it belongs elsewhere."""
        found = {
            (m.concept.name, self.quoted(m)) for m in self.affirmed if m.concept.kind == "elsewhere"
        }
        return FOREIGN * len(found)

    @cached_property
    def is_all_understood(self) -> bool:
        """Whether every word is one that this vocabulary knows."""
        known = self.lexicon.meaningful | self.lexicon.nearby
        taken = {place for m in self.affirmed + self.denied for place in m.places}
        return all(
            at in taken or w.is_light or w.word in known or not w.word.isalpha()
            for at, w in enumerate(self.words)
        )

    def is_wished(self, mention: Mention) -> bool:
        """Tell whether a practice is proposed, and not one that is in use."""
        first, last = self.words[mention.places[0]], self.words[mention.places[-1]]
        for mark in self.affirmed:
            if mark.concept.name not in WISHES:
                continue
            before, after = mention.places[0] - mark.places[0], mark.places[0] - mention.places[-1]
            word = self.words[mark.places[0]]
            is_led = word.sentence == first.sentence and 0 < before <= WISH_REACH
            if is_led or (word.clause == last.clause and 0 < after <= AFTERTHOUGHT_REACH):
                return True
        return False

    def accounts(self) -> tuple[Heard, ...]:
        """Return what was heard, for the reader of the answer."""
        told = [(m, False) for m in self.affirmed if m.concept.kind != "wording"]
        told += [(m, True) for m in self.denied]
        every = {
            (m.concept.name, is_denied): Heard(
                m.concept.name, m.concept.kind, self.quoted(m), is_denied
            )
            for m, is_denied in reversed(told)
        }
        return tuple(reversed(every.values()))


def hear(question: str) -> Hearing:
    """Return what a question says in its own words and in the errors pasted with it."""
    lex = lexicon()
    sections = split_sections(question)
    prose, pasted_text = _abridged(sections.prose), _abridged(sections.pasted)
    words = lex.read(prose)
    mentions = lex.mentions(words)
    used = {place for m in mentions for place in m.places}
    denied = [m for m in mentions if _is_denied(m, words, used)]
    pasted = _moved(lex.read(pasted_text), prose, words)
    shift = len(words)
    errors = [
        Mention(m.concept, tuple(place + shift for place in m.places))
        for m in lex.mentions(pasted)
        if m.concept.kind == "error"
    ]
    affirmed = [m for m in mentions if m not in denied]
    said = {m.concept.name for m in affirmed}
    # what is denied at one place and told at another is told
    lasting = [m for m in denied if m.concept.name not in said]
    return Hearing(
        prose + pasted_text, (*words, *pasted), (*affirmed, *errors), tuple(lasting), lex
    )


def _abridged(text: str) -> str:
    """Leave out the middle of what nobody would read in full either."""
    if len(text) <= 2 * LONGEST_READ:
        return text
    return f"{text[:LONGEST_READ]}\n\n{text[-LONGEST_READ:]}"


def _moved(pasted: Sequence[Word], prose: str, before: Sequence[Word]) -> list[Word]:
    """Place the words of what was pasted behind those of the prose."""
    sentences = before[-1].sentence + 1 if before else 0
    return [
        replace(
            w,
            start=w.start + len(prose),
            end=w.end + len(prose),
            sentence=w.sentence + sentences,
        )
        for w in pasted
    ]


def _is_denied(mention: Mention, words: Sequence[Word], used: set[int]) -> bool:
    if mention.concept.kind not in (*OBSERVED, *TRIED, "vague"):
        return False
    first, last = mention.places[0], mention.places[-1]
    clauses = {words[p].clause for p in mention.places}
    for at in range(max(0, first - FARTHEST), min(len(words), last + FARTHEST + 1)):
        word = words[at]
        if at in used or word.clause not in clauses:
            continue
        if word.word == OVERCOME and _room(words, at, first, last) <= OVERCOME_REACH:
            return True
        if at > last or _room(words, at, first, last) > NEGATION_REACH:
            continue
        is_given_up = word.word == WITHOUT and not _asks_how(words, word.sentence)
        if word.word == NEGATION or is_given_up:
            return True
    return False


def _room(words: Sequence[Word], at: int, first: int, last: int) -> int:
    """How many words that count stand between a word and a mention; none if it is inside."""
    apart = words[at + 1 : first] if at < first else words[last + 1 : at]
    return sum(not w.is_light for w in apart)


def _asks_how(words: Sequence[Word], sentence: int) -> bool:
    """Whether a sentence asks how to do without something, which is then what is wrong."""
    return any(w.sentence == sentence and w.word == ASKED_HOW for w in words)
