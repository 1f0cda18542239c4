"""The concepts a question can speak of, and which of them it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from traindx.specialists.playbooks import playbooks, read_yaml
from traindx.specialists.routing.clauses import Grammar, Word, grammar_of, read_words
from traindx.specialists.routing.phrases import Phrase, parse_phrase, surface_words
from traindx.specialists.routing.stems import Speller, speller_of, stem

# what one mention counts for the specialist; two are enough to be sent there
WEIGHTS = {"error": 4.0, "symptom": 3.0, "practice": 2.0, "remedy": 1.0, "hint": 1.0}
OBSERVED = ("error", "symptom")
TRIED = ("practice", "remedy")
UNCORRECTED = ("ordinary", "ignored", "light", "breaks", "kept")


@dataclass(frozen=True, slots=True)
class Concept:
    """Something a question can speak of: what was seen, is done, is proposed, or presses.

    `is_generic` marks what is said of other things than training too: slow, crashed, stuck.
    """

    name: str
    kind: str
    says: str
    weights: Mapping[str, float]
    is_generic: bool = False
    step: str = ""


@dataclass(frozen=True, slots=True)
class Mention:
    """A concept at its place in the question."""

    concept: Concept
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Every concept, found by the words that its phrases begin with."""

    grammar: Grammar
    speller: Speller
    phrases: Mapping[str, tuple[tuple[Phrase, Concept], ...]]
    domain: frozenset[str]
    nearby: frozenset[str]
    meaningful: frozenset[str]
    told: Mapping[str, Any]

    def read(self, text: str) -> list[Word]:
        """Return the meaningful words of a text, with typing errors undone."""
        return read_words(text, self.grammar, self.speller)

    def mentions(self, words: Sequence[Word]) -> list[Mention]:
        """Return what the words speak of; a part of a longer expression is not heard apart."""
        found = {
            (concept.name, places): Mention(concept, places)
            for at, word in enumerate(words)
            for phrase, concept in self.phrases.get(word.word, ())
            if (places := phrase.places(words, at)) is not None
        }
        at_place: dict[int, list[frozenset[int]]] = {}
        for mention in found.values():
            for place in mention.places:
                at_place.setdefault(place, []).append(frozenset(mention.places))
        return [m for m in found.values() if not _is_part(m, at_place[m.places[0]])]


@cache
def lexicon() -> Lexicon:
    """Return the lexicon of all playbooks and of the general vocabulary."""
    told = read_yaml(files(__package__).joinpath("vocabulary.yaml").read_text(encoding="utf-8"))
    grammar = grammar_of(told)
    phrases: dict[str, list[tuple[Phrase, Concept]]] = {}
    surface: set[str] = {*told["domain"], *told["nearby"]}
    plain = {word for key in UNCORRECTED for word in told[key]}
    for concept, written in concepts_told(told):
        for text in written:
            phrase = parse_phrase(text, grammar)
            if phrase is None:
                raise ValueError(f"{concept.name}: {text!r} holds only words that are ignored")
            # a slip is taken for a word of the trade, never for one of another trade
            (surface if concept.kind in WEIGHTS else plain).update(surface_words(text))
            for start in phrase.starts:
                phrases.setdefault(start, []).append((phrase, concept))
    for variants in told["synonyms"].values():
        surface |= {word for variant in variants for word in surface_words(variant)}
    domain, nearby = (
        frozenset(w.word for text in told[key] for w in read_words(text, grammar))
        for key in ("domain", "nearby")
    )
    known = {stem(word) for word in surface | plain} | set(told["synonyms"])
    return Lexicon(
        grammar,
        speller_of(surface, plain),
        {start: tuple(found) for start, found in phrases.items()},
        domain,
        nearby,
        frozenset(known) | domain,
        told,
    )


def concepts_told(told: Mapping[str, Any]) -> Iterator[tuple[Concept, Sequence[str]]]:
    """Return every concept with its phrases, as the playbooks and the vocabulary write them."""
    for playbook in playbooks():
        for name, entry in playbook.concepts.items():
            kind = entry["kind"]
            weights = {playbook.name: float(entry.get("weight", WEIGHTS[kind]))}
            weights.update(_weights(entry.get("also", {})))
            concept = Concept(
                name,
                kind,
                entry["says"],
                weights,
                entry.get("generic") == "true",
                entry.get("step", ""),
            )
            yield concept, entry["phrases"]
    for kind in ("vague", "pressure", "elsewhere", "wording"):
        for name, entry in told[kind].items():
            concept = Concept(name, kind, entry["says"], _weights(entry.get("weights", {})))
            yield concept, entry["phrases"]


def _is_part(mention: Mention, others: Sequence[frozenset[int]]) -> bool:
    """Whether the words of a mention are some of those of another."""
    own = frozenset(mention.places)
    return any(own < other for other in others)


def _weights(told: Mapping[str, str]) -> dict[str, float]:
    return {specialist: float(weight) for specialist, weight in told.items()}
