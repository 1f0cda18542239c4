"""Values of two sorts are never equal; members of an enumeration are a sort of their own."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Items, NeverEqual
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

_PROGRAM = """
import csv, json
import numpy as np
from enum import Enum, IntEnum, auto

class Role(Enum):
    USER = "user"
    BOT = "bot"

class Mode({bases}):
    TRAIN = "train"

rows = list(csv.DictReader(open("rows.csv")))
turn = json.loads(open("turn.json").read())
ids = set(np.random.default_rng(0).permutation(60)[:12].tolist())
for row in rows:
    found = {test}
    print(found)
"""


def _is_never(test: str, bases: str = "Enum") -> bool:
    text = _PROGRAM.format(test=test, bases=bases)
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    return any(isinstance(e.result, NeverEqual) for e in story.events)


@pytest.mark.parametrize(
    "test",
    ['row["id"] in ids', 'row["id"] not in ids', 'turn["role"] == Role.USER',
     'row["id"] != 3', 'Role.USER == "user"', "Mode.TRAIN == Role.USER"],
)  # fmt: skip
def test_two_sorts_are_never_equal(test: str) -> None:
    assert _is_never(test)


@pytest.mark.parametrize(
    "test",
    ['int(row["id"]) in ids', 'row["id"] == "3"', 'turn["role"] == Role.USER.value',
     "Role(name) == Role.USER", "ask() == Role.USER", 'turn["n"] == 3', "row in ids",
     "Role.USER == Role.BOT"],
)  # fmt: skip
def test_what_may_be_equal_is_left_open(test: str) -> None:
    assert not _is_never(test)


@pytest.mark.parametrize("bases", ["str, Enum", "IntEnum", "enum.StrEnum"])
def test_members_with_a_value_of_their_own_equal_it(bases: str) -> None:
    assert not _is_never('Mode.TRAIN == "train"', bases)


def test_a_repeated_list_is_not_cut_short() -> None:
    text = "data = [0] * 5000\nheld = data[4000:]\nprint(held)\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    held = next(e for e in story.events if e.name == "builtins.print").args[0]
    assert isinstance(held, Items)
    assert not held.is_whole
