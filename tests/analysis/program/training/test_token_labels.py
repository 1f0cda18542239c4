"""What masks the labels of language models."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.token_labels import emptied_labels, padded_length, tokens_of
from traindx.examples import make_run

START = """
import torch
from transformers import AutoTokenizer

tok = AutoTokenizer.from_pretrained("gpt2")
padded = tok(text, padding="max_length", max_length=64, return_tensors="pt")
plain = tok(text, return_tensors="pt")
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"t.py": START + text})).stories[0]


@pytest.mark.parametrize(
    ("length", "is_padded"),
    [
        ("len(padded['input_ids'][0])", True),
        ("padded.input_ids.shape[1]", True),
        ("padded['input_ids'].size(1)", True),
        ("plain['input_ids'].size(1)", False),
        ("padded['attention_mask'].sum()", False),
    ],
)
def test_the_length_of_a_padded_text(length: str, is_padded: bool) -> None:
    story = _story(f"print({length})\n")
    given = next(e.args[0] for e in story.events if e.name == "builtins.print")
    assert (padded_length(given) is not None) is is_padded


def test_rows_are_traced_to_their_tokenizer() -> None:
    story = _story("labels = padded['input_ids'].clone()\nprint(labels[0])\n")
    given = next(e.args[0] for e in story.events if e.name == "builtins.print")
    assert tokens_of(given) is not None


@pytest.mark.parametrize(("then", "is_empty"), [("pass", True), ("labels[0] = 3", False)])
def test_labels_that_are_never_set(then: str, is_empty: bool) -> None:
    text = f"labels = torch.full((4, 8), -100)\n{then}\nloss = model(ids, labels=labels).loss\n"
    assert bool(list(emptied_labels(_story(text)))) is is_empty
