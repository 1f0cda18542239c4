"""Settings that a program reads out of a text, and what fails on the way."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Value, constant
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

TEXT = '''
TEXT = """
rate: 0.1   # of the optimizer
size: 16
kind: ReLU
"""
read = {}
for line in TEXT.strip().splitlines():
    key, _, value = line.split("#")[0].partition(":")
    value = value.strip()
    for kind in (int, float):
        try:
            value = kind(value)
            break
        except ValueError:
            pass
    read[key] = value
import torch
'''


def _named(text: str, name: str) -> Value:
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    return [a.value for a in story.execution.assignments if a.name == name][-1]


@pytest.mark.parametrize(("key", "value"), [("rate", 0.1), ("size", 16), ("kind", "ReLU")])
def test_a_text_that_is_parsed(key: str, value: object) -> None:
    assert constant(_named(f"{TEXT}found = read['{key}']\n", "found")) == value


@pytest.mark.parametrize(
    ("handler", "value"), [("ValueError", 2), ("Exception", 2), ("(KeyError, ValueError)", 2)]
)
def test_what_fails_goes_to_its_handler(handler: str, value: int) -> None:
    text = f"import torch\ntry:\n    n = int('x')\nexcept {handler}:\n    n = 2\nfound = n\n"
    assert constant(_named(text, "found")) == value


def test_what_fails_outside_of_a_try_is_not_known() -> None:
    assert constant(_named("import torch\nfound = int('x')\n", "found")) is None


def test_what_fails_under_a_condition_is_not_known() -> None:
    text = """
import torch
try:
    n = 1
    if torch.rand(1) > 0:
        n = int("x")
except ValueError:
    n = 2
found = n
"""
    assert constant(_named(text, "found")) is None


@pytest.mark.parametrize(
    "words",
    [
        'words = ["<unk>", "<pad>"] + sorted(tokens)',
        'words = ["<unk>", "<pad>", *sorted(tokens)]',
        'words = ["<unk>", "<pad>"]\nwords.extend(sorted(tokens))',
        'words = ["<unk>", "<pad>"]\nwords += sorted(tokens)',
    ],
)
def test_words_that_stand_first(words: str) -> None:
    text = f"import torch\n{words}\nindex = {{w: i for i, w in enumerate(words)}}\n"
    assert constant(_named(f"{text}found = index['<pad>']\n", "found")) == 1
    assert constant(_named(f"{text}found = words[1]\n", "found")) == "<pad>"
    assert constant(_named(f"{text}found = index['cat']\n", "found")) is None
    assert constant(_named(f"{text}found = len(words)\n", "found")) is None
