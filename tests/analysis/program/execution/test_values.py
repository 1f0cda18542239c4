"""Values: what they hold from the beginning, and what is taken back."""

from __future__ import annotations

from traindx.analysis.program.execution.machine import Machine
from traindx.analysis.program.execution.values import Items, Known, Unknown
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Module
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


def test_a_value_holds_no_dictionary_until_one_is_asked_for() -> None:
    value = Known(1)
    assert value.held is None
    assert value.fields == {}
    assert value.fields is value.fields


def test_fields_are_a_copy_of_what_a_value_begins_with() -> None:
    begun = {0: Known(1)}
    value = Items("list", held=begun)
    value.fields[1] = Known(2)
    assert (len(value.members), len(begun)) == (2, 1)


def test_a_name_of_one_value_is_none_of_another() -> None:
    first, second = Unknown(), Unknown()
    first.add_name("loss")
    second.add_name("loss")
    first.add_name("total")
    assert first.names == {"loss", "total"}
    assert second.names == {"loss"}


def test_what_is_done_apart_is_taken_back_from_what_was_there_before() -> None:
    machine = Machine(Project(()), Module("train.py", ""))
    before = Unknown()  # it gets its fields inside only
    with machine.isolated():
        inside = Unknown()
        with machine.isolated():
            machine.write(inside.fields, "weight", Known(1))
            machine.write(before.fields, "weight", Known(1))
        assert (inside.fields, before.fields) == ({}, {})
        machine.write(inside.fields, "bias", Known(0))
        machine.write(before.fields, "bias", Known(0))
    assert list(inside.fields) == ["bias"]
    assert before.fields == {}


def test_operations_come_in_the_order_of_the_program() -> None:
    text = "import torch\na = torch.rand(2)\nb = a.exp()\nc = torch.log(b)\nd = c.exp()\n"
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    found = [computed.operation.name for computed in story.operations("log", "exp", "exp")]
    assert found == ["exp", "log", "exp"]
