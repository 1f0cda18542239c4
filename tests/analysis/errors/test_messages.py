"""Tables of error messages: what a row says of a text, and what finding it makes."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import traindx.analysis.errors
from traindx.analysis.errors.messages import (
    Message,
    causes_in,
    fill,
    finding,
    findings,
    known_error,
    occurrences,
    read,
)
from traindx.causes import all_causes
from traindx.examples import failed
from traindx.model.findings import Strength

TABLE = (
    Message(
        r"got (?P<got>\w+), not (?P<wanted>\w+)|(?P<got2>\w+) came",
        "It is {got}[[, {wanted} is wanted||, and that is all]]",
        shows="dtype-mismatch",
    ),
    Message(r"", "It ended", strong="worker-crash", weak="disk-full", types="EOFError"),
)
FIELD = re.compile(r"\{(\w+)\}")


def rows() -> Iterator[tuple[str, Message]]:
    for info in pkgutil.iter_modules(traindx.analysis.errors.__path__):
        module = importlib.import_module(f"traindx.analysis.errors.{info.name}")
        for name, table in vars(module).items():
            if isinstance(table, tuple) and table and isinstance(table[0], Message):
                yield from ((f"{info.name}.{name}", row) for row in table)


ROWS = list(rows())


def test_a_claim_is_filled_with_the_words_of_the_message() -> None:
    found = read("expected: got Half, not Float", TABLE)
    assert found is not None
    assert found[1] == {"got": "Half", "wanted": "Float"}
    assert fill(found[0].claim, found[1]) == "It is Half, Float is wanted"


def test_a_number_behind_a_group_tells_alternatives_apart() -> None:
    found = read("Double came", TABLE)
    assert found is not None
    assert fill(found[0].claim, found[1]) == "It is Double, and that is all"


def test_a_row_may_be_limited_to_a_type() -> None:
    assert read("anything", TABLE, "ValueError") is None
    found = read("anything", TABLE, "EOFError")
    assert found is not None
    assert found[0].suggests == {"worker-crash": Strength.STRONG, "disk-full": Strength.WEAK}


def test_the_failure_of_a_run_is_read_and_explained() -> None:
    run = failed("RuntimeError: got Half, not Float", "loss = model(x)")
    (found,) = findings(run, TABLE)
    assert found.claim == "It is Half, Float is wanted"
    assert found.shows == "dtype-mismatch"
    assert found.location is not None and found.location.file == "train.py"
    assert not list(findings(failed("RuntimeError: other"), TABLE))


def test_a_shown_cause_drops_the_guesses_of_the_row() -> None:
    known = known_error(failed("EOFError: "), TABLE)
    assert known is not None
    assert finding(known).suggests
    assert not finding(known, cause="disk-full").suggests
    assert finding(known, cause="disk-full").shows == "disk-full"
    guessed = finding(known, suggests={"disk-full": Strength.MODERATE})
    assert guessed.shows is None and guessed.suggests == {"disk-full": Strength.MODERATE}


def test_occurrences_are_counted() -> None:
    assert occurrences("1.5 and 2.5", Message(r"\d\.\d")) == 2


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{t}-{i}" for i, (t, _) in enumerate(ROWS)])
def test_rows_are_sound(table: str, row: Message) -> None:
    re.compile(row.pattern)
    named = {*row.suggests, *([row.shows] if row.shows else [])}
    assert named <= all_causes().keys()
    assert not (row.shows and {row.shows} & row.suggests.keys())
    assert row.pattern or row.types, "a row without words needs a type"
    assert row.claim.count("[[") == row.claim.count("]]")
    assert not row.claim.endswith(".")


def test_a_claim_says_something_of_every_message_it_knows() -> None:
    for _, row in ROWS:
        assert not row.claim or FIELD.sub("", row.claim).strip("[]| "), row.pattern


def test_a_table_knows_the_causes_of_its_rows():
    table = (Message("a", shows="one", weak="two"), Message("b", strong="two three"))
    assert causes_in(table) == ("one", "two", "three")
