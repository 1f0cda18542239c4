"""Whether labels still belong to their inputs where a step shuffles."""

from __future__ import annotations

from traindx.analysis.steps.pairs import lone_shuffle
from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.examples import captured, step_of

STEP = """
x: batch/0 (32, 8)
y: batch/1 (32)
i: outside (32)
w: parameter:fc.weight (10, 8)
px (32, 8) = index(x, i)
py (32) = index(y, i)
o (32, 10) = mm({x}, w) in fc
loss () = nll_loss(o, {y})
"""


def step(x: str, y: str, **index: bool) -> Step:
    facts = {"is_permutation": True, **index}
    (found,) = steps_of(captured(step_of(STEP.format(x=x, y=y), i=facts)))
    return found


def test_labels_alone() -> None:
    found = lone_shuffle(step("x", "py"))
    assert found is not None and found.of.label == "batch/1"


def test_both_or_neither() -> None:
    assert lone_shuffle(step("px", "py")) is None
    assert lone_shuffle(step("x", "y")) is None


def test_the_order_that_there_was_is_no_shuffle() -> None:
    assert lone_shuffle(step("x", "py", is_sorted=True)) is None


def test_inputs_that_are_sorted_and_put_back() -> None:
    text = STEP.format(x="px", y="y").replace("loss ()", "b (32, 10) = index_select(o, i)\nloss ()")
    facts = {"is_permutation": True}
    (found,) = steps_of(captured(step_of(text.replace("nll_loss(o", "nll_loss(b"), i=facts)))
    assert lone_shuffle(found) is None
    assert lone_shuffle(step("px", "y")) is not None
