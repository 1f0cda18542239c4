"""A text as the words that carry meaning, each with its sentence and its clause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from traindx.specialists.routing.stems import Speller, stem, words_in

NEGATION = "not"
_ENDS_SENTENCE = re.compile(r"[.!?…](?=[\s\"')\]*]|$)|\n\s*\n|\n\s*[-*•\d]")
_ENDS_CLAUSE = re.compile(r"[,;:()—–\n/]|\s-+\s")
_SHORTENED = re.compile(r"(?<=\w)'(?:s|m|re|ve|d)$")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a question: as it is compared, and where it stands."""

    word: str
    start: int
    end: int
    sentence: int
    clause: int
    is_light: bool = False


@dataclass(frozen=True, slots=True)
class Grammar:
    """What the reader has to know of the language.

    `renamed` maps a run of stems to the one word it stands for; to nothing where it means nothing.
    `ignored` words are dropped, `light` ones stand between others without parting them, and with
    `breaks` another clause begins.
    """

    renamed: Mapping[tuple[str, ...], str]
    longest: int
    kept: frozenset[str]
    breaks: frozenset[str]
    ignored: frozenset[str]
    light: frozenset[str]


def read_words(text: str, grammar: Grammar, speller: Speller | None = None) -> list[Word]:
    """Return the meaningful words of a text in their common form."""
    words = _split(text, grammar, speller)
    read: list[Word] = []
    at = extra = 0
    while at < len(words):
        width, meaning = _renaming(words, at, grammar)
        here, last = words[at], words[at + width - 1]
        extra += meaning in grammar.breaks
        if meaning and meaning not in grammar.ignored:
            is_light = meaning in grammar.light or meaning in grammar.breaks
            clause = here.clause + extra
            read.append(Word(meaning, here.start, last.end, here.sentence, clause, is_light))
        at += width
    return read


def _split(text: str, grammar: Grammar, speller: Speller | None) -> list[Word]:
    found: list[Word] = []
    sentence = clause = end = 0
    for raw, start in words_in(text):
        between = text[end:start]
        if _ENDS_SENTENCE.search(between + raw):
            sentence, clause = sentence + 1, clause + 1
        elif _ENDS_CLAUSE.search(between):
            clause += 1
        end = start + len(raw)
        for part in _expanded(raw):
            meant = speller.correct(part) if speller else part
            kept = meant if meant in grammar.kept else stem(meant)
            found.append(Word(kept, start, end, sentence, clause))
    return found


def _expanded(raw: str) -> Iterator[str]:
    """Turn isn't into is not, I'll into I will, and it's into it."""
    if raw.endswith("n't"):
        yield raw[:-3] or NEGATION
        yield NEGATION
    elif raw.endswith("'ll"):
        yield raw[:-3]
        yield "will"
    else:
        yield _SHORTENED.sub("", raw)


def _renaming(words: Sequence[Word], at: int, grammar: Grammar) -> tuple[int, str]:
    """How many words from here stand for one meaning, and which."""
    for width in range(min(grammar.longest, len(words) - at), 0, -1):
        run = words[at : at + width]
        key = tuple(w.word for w in run)
        if key in grammar.renamed and run[0].sentence == run[-1].sentence:
            return width, grammar.renamed[key]
    return 1, words[at].word


def grammar_of(told: Mapping[str, Sequence[str] | Mapping[str, Sequence[str]]]) -> Grammar:
    """Return the grammar that a vocabulary file describes."""
    kept = frozenset(told["kept"])
    bare = Grammar({}, 1, kept, frozenset(), frozenset(), frozenset())

    def stems(phrase: str) -> tuple[str, ...]:
        return tuple(w.word for w in _split(phrase, bare, None))

    renamed = {stems(phrase): "" for phrase in told["idle"]}
    synonyms = told["synonyms"]
    assert isinstance(synonyms, Mapping)
    for meaning, variants in synonyms.items():
        renamed.update({stems(variant): stems(meaning)[0] for variant in variants})
    return replace(
        bare,
        renamed=renamed,
        longest=max(map(len, renamed)),
        breaks=frozenset(stem(w) for w in told["breaks"]),
        ignored=frozenset(s for w in told["ignored"] for s in (w, stem(w))),
        light=frozenset(s for w in told["light"] for s in (w, stem(w))),
    )
