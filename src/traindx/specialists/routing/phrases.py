"""Phrases as the playbooks write them, and where a question says them.

`loss nan` wants the words in this order with at most one other between; `loss ~ nan` allows several
between; `loss + nan` wants both in one sentence in any order; `a|b` is either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx.specialists.routing.clauses import NEGATION, Grammar, Word, read_words

NEXT, NEAR = 2, 6  # how many words further the next word may be: beside, or somewhere after
REACH = 16  # the parts of one thought stand closer than this even in long sentences


@dataclass(frozen=True, slots=True)
class PhraseWord:
    """One word of a phrase: which words will do, and how far on it may be."""

    words: frozenset[str]
    reach: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """Parts that all have to be in one sentence; each part is words in order."""

    parts: tuple[tuple[PhraseWord, ...], ...]

    @property
    def starts(self) -> frozenset[str]:
        """The words that the first part can begin with."""
        return self.parts[0][0].words

    def places(self, words: Sequence[Word], start: int) -> tuple[int, ...] | None:
        """Return which words say the phrase when its first part starts here, if they do."""
        first = _follow(self.parts[0], words, start)
        if first is None:
            return None
        taken = list(first)
        for part in self.parts[1:]:
            found = _nearest(part, words, start, set(taken))
            if found is None:
                return None
            taken += found
        return tuple(sorted(taken))


def parse_phrase(written: str, grammar: Grammar) -> Phrase | None:
    """Return a phrase, or nothing if it holds only words that are ignored."""
    parts = tuple(_part(part, grammar) for part in written.split(" + "))
    return Phrase(parts) if all(parts) else None


def _part(written: str, grammar: Grammar) -> tuple[PhraseWord, ...]:
    steps: list[PhraseWord] = []
    for place, segment in enumerate(written.split(" ~ ")):
        for number, choice in enumerate(_choices(segment, grammar)):
            reach = NEAR if place and not number else NEXT
            steps.append(PhraseWord(choice, reach))
    return tuple(steps)


def _choices(segment: str, grammar: Grammar) -> Iterator[frozenset[str]]:
    """The words of a segment in order; written alternatives count as one word."""
    plain: list[str] = []
    for token in segment.split():
        if "|" not in token:
            plain.append(token)
            continue
        yield from _meanings(plain, grammar)
        plain = []
        yield frozenset(w.word for c in token.split("|") for w in read_words(c, grammar))
    yield from _meanings(plain, grammar)


def _meanings(plain: Sequence[str], grammar: Grammar) -> Iterator[frozenset[str]]:
    for word in read_words(" ".join(plain), grammar):
        yield frozenset({word.word})


def _follow(
    steps: Sequence[PhraseWord], words: Sequence[Word], start: int
) -> tuple[int, ...] | None:
    if words[start].word not in steps[0].words:
        return None
    places = [start]
    for step in steps[1:]:
        place = _next_place(step, words, places[-1])
        if place is None:
            return None
        places.append(place)
    return tuple(places)


def _next_place(step: PhraseWord, words: Sequence[Word], after: int) -> int | None:
    """Where the step's word comes next, if it is near enough; light words take no room.

    What follows a "not" has to stand in its clause.
    """
    room, here = step.reach, words[after]
    is_denial = here.word == NEGATION
    for place in range(after + 1, len(words)):
        word = words[place]
        if word.sentence != here.sentence or (is_denial and word.clause != here.clause):
            return None
        if word.word in step.words:
            return place
        room -= not word.is_light
        if room <= 0:
            return None
    return None


def _nearest(
    steps: Sequence[PhraseWord], words: Sequence[Word], start: int, taken: set[int]
) -> tuple[int, ...] | None:
    around = range(max(0, start - REACH), min(len(words), start + REACH + 1))
    found = [
        places
        for i in sorted(around, key=lambda i: (abs(i - start), i))
        if words[i].sentence == words[start].sentence
        and (places := _follow(steps, words, i)) is not None
        and not taken & set(places)
    ]
    return found[0] if found else None


def surface_words(written: str) -> set[str]:
    """Return the words of a phrase as written, for the speller."""
    marks = str.maketrans("|+~.,()=_-/'", " " * 12)
    return set(written.lower().translate(marks).split())
