"""Which operation of a step made the first value that is no number."""

from __future__ import annotations

from typing import Any

from traindx.analysis.steps.nonfinite_origins import (
    are_weights_sound,
    is_masked_later,
    is_mean_of_nothing,
    origins,
)
from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.examples import captured, step_of

STEP = """
x: batch/0 (8, 4)
w: parameter:fc.weight (4, 4)
h (8, 4) = mm(x, w)
a (8, 4) = log(h)
b (8, 4) = softmax(a)
loss () = mean(b)
"""
BAD = {"nonfinite": 1}


def step(*broken: str, **facts: Any) -> Step:
    told = dict.fromkeys(broken, BAD) | facts
    (found,) = steps_of(captured(step_of(STEP, **told)))
    return found


def names(found: Step) -> list[str]:
    return [act.name for act in origins(found)]


def test_the_operation_with_finite_inputs() -> None:
    assert names(step("a", "b", "loss")) == ["log"]
    assert names(step("b", "loss")) == ["softmax"]
    assert names(step("x", "h", "a", "b", "loss")) == []
    assert names(step()) == []


def test_what_a_softmax_takes_as_a_mask() -> None:
    found = step("a", "b", "loss")
    (act,) = origins(found)
    assert is_masked_later(found, act)
    assert not is_masked_later(step("b", "loss"), found.acts[0])


def test_weights_that_are_broken() -> None:
    sane = {"low": -1.0, "high": 1.0}
    assert are_weights_sound(step(w=sane), 10.0)
    assert not are_weights_sound(step(w={**sane, "high": 99.0}), 10.0)
    assert not are_weights_sound(step("w"), 10.0)


def test_a_sum_over_nothing_by_its_count() -> None:
    text = "s: batch/0 ()\nn: batch/1 ()\nloss () = div(s, n)"
    for count, is_nothing in ((0.0, True), (3.0, False)):
        zero, many = {"low": 0.0, "high": 0.0}, {"low": count, "high": count}
        (found,) = steps_of(captured(step_of(text, s=zero, n=many)))
        assert is_mean_of_nothing(found.acts[0]) is is_nothing
