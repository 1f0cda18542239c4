"""A captured step as a graph: roles, dependence, and what a broken file leaves of it."""

from __future__ import annotations

from dataclasses import replace

from traindx.analysis.steps.broadcasts import crossed
from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.examples import captured, step_of
from traindx.model.recording import StepOperation

REGRESSION = """
x: batch/0 (32, 8)
y: batch/1 (32)
w: parameter:fc.weight (1, 8)
wt (8, 1) = t(w) in fc
out (32, 1) = mm(x, wt) in fc @ 20
d (32, 32) = sub(out, y) @ 21
s (32, 32) = pow(d)
loss () = mean(s)
"""


def step(text: str, kind: str = "training") -> Step:
    (found,) = steps_of(captured(step_of(text, kind)))
    return found


def test_what_is_put_through_the_model_and_what_only_meets_the_loss() -> None:
    found = step(REGRESSION)
    assert [n.label for n in found.inputs] == ["batch/0"]
    assert [n.label for n in found.labels] == ["batch/1"]
    assert {n.label for n in found.learning if n.is_parameter} == {"fc.weight"}


def test_a_tensor_with_requires_grad_is_a_weight_without_a_module() -> None:
    text = REGRESSION.replace("w: parameter:fc.weight", "w: outside")
    (found,) = steps_of(captured(step_of(text, w={"needs_grad": True})))
    assert [n.label for n in found.inputs] == ["batch/0"]


def test_dependence_goes_through_operations_only() -> None:
    found = step(REGRESSION)
    (loss,) = found.losses
    assert loss.depends_on(found.inputs[0])
    assert not found.inputs[0].depends_on(loss)


def test_a_column_against_a_row() -> None:
    (met,) = crossed(step(REGRESSION))
    assert met.column.shape == (32, 1) and met.row.shape == (32,)
    assert met.result == (32, 32)
    assert not list(crossed(step(REGRESSION.replace("y: batch/1 (32)", "y: batch/1 (32, 1)"))))


def test_kinds_are_told_apart() -> None:
    run = captured(step_of(REGRESSION), step_of(REGRESSION, "evaluation"))
    assert [s.is_training for s in steps_of(run)] == [True, False]
    assert len(list(steps_of(run, training=False))) == 1


def test_numbers_that_lead_nowhere_are_left_out() -> None:
    whole = step_of(REGRESSION)
    broken = replace(whole, operations=(*whole.operations, StepOperation("add", (0, 99), (100,))))
    (found,) = steps_of(captured(broken))
    assert len(found.acts) == len(whole.operations)
