"""Which parameters gradients reach, and where the way to the others is cut."""

from __future__ import annotations

from dataclasses import replace

from traindx.analysis.steps.gradient_cuts import cut_parameters, cuts, taught
from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.examples import captured, step_of

TWO_LAYERS = """
x: batch/0 (32, 8)
y: batch/1 (32, 4)
w: parameter:encoder.weight (4, 8)
v: parameter:head.weight (4, 4)
h (32, 4) = mm(x, w) in encoder
c (32, 4) = {cut}(h)
o (32, 4) = mm(c, v) in head
d (32, 4) = sub(o, y)
loss () = mean(d)
"""


def step(cut: str) -> Step:
    (found,) = steps_of(captured(step_of(TWO_LAYERS.format(cut=cut))))
    return found


def test_gradients_reach_everything_below_the_loss() -> None:
    found = step("relu")
    assert {n.label for n in taught(found) if n.is_parameter} == {"encoder.weight", "head.weight"}
    assert cut_parameters([found]) == set()


def test_what_lies_behind_a_cut_is_not_reached() -> None:
    found = step("argmax")
    assert cut_parameters([found]) == {"encoder.weight"}
    (cut,) = cuts(found, {"encoder.weight"})
    assert cut.act.name == "argmax" and cut.is_stepped and not cut.is_detached


def test_a_custom_function_carries_gradients_through_what_it_computes() -> None:
    text = TWO_LAYERS.replace("c (32, 4) = {cut}(h)", "a (32, 4) = exp(h)\nc (32, 4) = neg(a)")
    whole = step_of(text, a={"needs_grad": False}, c={"needs_grad": True})
    inside = tuple(
        replace(o, is_without_grad=True) if o.name in ("exp", "neg") else o
        for o in whole.operations
    )
    (found,) = steps_of(captured(replace(whole, operations=inside)))
    assert cut_parameters([found]) == set()


def test_a_critic_leaves_the_generator_alone() -> None:
    apart = {"encoder.weight": 0, "head.weight": 1}
    assert cut_parameters([step("detach")], apart) == set()
    assert cut_parameters([step("detach")], dict.fromkeys(apart, 0)) == {"encoder.weight"}


def test_another_loss_that_teaches_it_is_enough() -> None:
    assert cut_parameters([step("detach"), step("relu")]) == set()
