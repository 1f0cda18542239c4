"""The words of routing: phrases that mean something, concepts with one name, slips undone."""

from __future__ import annotations

import pytest

from traindx.specialists.playbooks import NAMES
from traindx.specialists.routing.clarification import information
from traindx.specialists.routing.clauses import read_words
from traindx.specialists.routing.concepts import concepts_told, lexicon
from traindx.specialists.routing.phrases import parse_phrase
from traindx.specialists.routing.sections import split_sections
from traindx.specialists.routing.stems import distance, stem


def test_every_concept_has_one_name() -> None:
    names = [concept.name for concept, _ in concepts_told(lexicon().told)]
    assert len(names) == len(set(names))


def test_no_phrase_of_several_words_shrinks_to_one_that_means_less() -> None:
    grammar = lexicon().grammar
    for concept, written in concepts_told(lexicon().told):
        for text in written:
            phrase = parse_phrase(text, grammar)
            assert phrase is not None, (concept.name, text)
            left = sum(len(part) for part in phrase.parts)
            assert left > 1 or len(text.split()) == 1, (concept.name, text)


def test_no_phrase_is_claimed_by_two_specialists_alone() -> None:
    """The same words for two concepts are a tie that the order of names would decide."""
    owners: dict[object, set[str]] = {}
    for concept, written in concepts_told(lexicon().told):
        if concept.kind in ("error", "symptom"):
            for text in written:
                owners.setdefault(parse_phrase(text, lexicon().grammar), set()).add(concept.name)
    assert {phrase: names for phrase, names in owners.items() if len(names) > 1} == {}


def test_rules_and_questions_name_what_exists() -> None:
    told = lexicon().told
    concepts = {concept.name for concept, _ in concepts_told(told)}
    for rule in told["order"]:
        assert {rule["first"], rule["then"]} <= set(NAMES)
        assert set(rule.get("when", ())) <= concepts, rule
    for question in told["questions"]:
        assert question["ask"].count("?") == 1
        assert all(set(names) <= set(NAMES) for names in question["answers"].values())


@pytest.mark.parametrize(
    ("words", "common"),
    [
        ("train trains", "train"),
        ("crash crashed crashing crashes", "crash"),
        ("diverge diverges diverged diverging", "diverg"),
        ("loss losses", "loss"),
        ("stop stopped stopping", "stop"),
        ("memory memories", "memory"),
    ],
)
def test_endings_are_taken_off(words: str, common: str) -> None:
    assert {stem(word) for word in words.split()} == {common}


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [("loss", "loss", 0), ("los", "loss", 1), ("epcoh", "epoch", 1), ("gpu", "cpu", 1)],
)
def test_distance_counts_slips(a: str, b: str, apart: int) -> None:
    assert distance(a, b) == distance(b, a) == apart


@pytest.mark.parametrize(
    "word", ["later", "names", "print", "close", "whose", "export", "nodes", "touch"]
)
def test_ordinary_words_are_left_alone(word: str) -> None:
    assert lexicon().speller.correct(word) == word


def test_identifiers_are_read_as_words() -> None:
    words = [
        w.word for w in read_words("DistributedDataParallel and loss.backward()", lexicon().grammar)
    ]
    assert words == ["ddp", "and", "loss", "backward"]


def test_a_new_clause_begins_at_but() -> None:
    words = read_words("no crash but slow", lexicon().grammar)
    assert words[0].clause == words[1].clause != words[-1].clause


def test_pasted_parts_are_told_from_prose() -> None:
    text = 'It fails.\n\n```\nx = 1\n```\nTraceback (most recent call last):\n  File "a.py", line 1\nValueError: bad\nWhy?'
    sections = split_sections(text)
    assert "It fails." in sections.prose
    assert "Why?" in sections.prose
    assert "x = 1" in sections.pasted
    assert "ValueError: bad" in sections.pasted


def test_prose_with_figures_is_prose() -> None:
    line = "The loss went from 2.3 to 0.4 in the first 10 epochs and then it rose again.\nWhy?"
    assert split_sections(line).pasted == ""


def test_a_question_that_separates_tells_more_than_one_that_does_not() -> None:
    likely = {"a": 1.0, "b": 1.0}
    assert information(likely, {"x": ["a"], "y": ["b"]}) == pytest.approx(1.0)
    assert information(likely, {"x": ["a", "b"]}) == pytest.approx(0.0)
    assert information(likely, {"x": ["a", "b"], "y": ["a", "b"]}) == pytest.approx(0.0)
