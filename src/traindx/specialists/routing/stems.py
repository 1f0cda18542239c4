"""Words as they are compared: split, lower-cased, without endings, with typing errors undone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z]{2})")
_WORD = re.compile(
    r"[A-Za-z]+(?:['’][A-Za-z]+)?\d*|\d+(?:[.,]\d+)*(?:e[-+]?\d+)?[A-Za-z]*", re.IGNORECASE
)
_VOWEL = re.compile(r"[aeiouy]")
SHORTEST_TO_CORRECT = 5  # most words of four letters are one letter from another word
TWO_ERRORS_FROM = 9


def words_in(text: str) -> list[tuple[str, int]]:
    """Return the lower-case words of a text with the position each starts at."""
    found = []
    for match in _WORD.finditer(text):
        start = match.start()
        for part in _CAMEL.split(match[0]):
            found.append((part.lower().replace("’", "'"), start))
            start += len(part)
    return found


@cache
def stem(word: str) -> str:
    """Return a word without its commonest endings: trains, trained, training are one."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("ly", "")):
        bare = word[: -len(ending)]
        if word.endswith(ending) and len(bare) >= 3 and _VOWEL.search(bare):
            word = bare + instead
            is_doubled = not instead and len(word) > 3 and word[-1] == word[-2]
            word = word[:-1] if is_doubled and word[-1] not in "lsz" else word
            break
    else:
        if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


@dataclass(frozen=True, slots=True)
class Speller:
    """Undoes typing errors towards the words that mean something here."""

    known: frozenset[str]
    by_letter: Mapping[str, tuple[str, ...]]

    def correct(self, word: str) -> str:
        """Return the one known word that is a slip away, or the word itself."""
        if len(word) < SHORTEST_TO_CORRECT or not word.isalpha() or self._is_known(word):
            return word
        allowed = 2 if len(word) >= TWO_ERRORS_FROM else 1
        near: dict[int, set[str]] = {}
        for other in self.by_letter.get(word[0], ()):
            if abs(len(other) - len(word)) <= allowed:
                apart = distance(word, other)
                if apart <= allowed:
                    near.setdefault(apart, set()).add(other)
        best = near[min(near)] if near else set()
        return min(best) if len({stem(b) for b in best}) == 1 else word

    def _is_known(self, word: str) -> bool:
        return word in self.known or stem(word) in self.known


def speller_of(wanted: Iterable[str], ordinary: Iterable[str]) -> Speller:
    """Return a speller that corrects towards the wanted words and leaves ordinary ones alone."""
    targets = {w for w in wanted if len(w) >= SHORTEST_TO_CORRECT and w.isalpha()}
    letters: dict[str, list[str]] = {}
    for word in sorted(targets):
        letters.setdefault(word[0], []).append(word)
    known = {*targets, *ordinary}
    return Speller(
        frozenset(known | {stem(w) for w in known}),
        {letter: tuple(words) for letter, words in letters.items()},
    )


def distance(a: str, b: str) -> int:
    """Return how many letters to insert, drop, replace or swap to turn one word into the other."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, start=1):
        above, row, older = row, [i], before
        for j, other in enumerate(b, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1]
