"""Weights that nobody holds, results that nobody uses, and scores taken for probabilities."""

from __future__ import annotations

import pytest

from traindx.analysis.steps.dead_ends import dead_ends, idle_parameters
from traindx.analysis.steps.probabilities import complements_of_scores
from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.analysis.steps.stray_weights import first_use, stray_weights
from traindx.examples import captured, step_of

BRANCHES = """
x: batch/0 (32, 8)
s: outside (8)
a: parameter:a.weight (8, 8)
b: parameter:b.weight (8, 8)
m (32, 8) = mul(x, s) @ 20
h (32, 8) = mm(m, a) in a
g (32, 8) = mm(x, b) in b
r (32, 8) = relu(g) @ 30
loss () = mean(h)
"""
SCORES = """
x: batch/0 (32, 8)
y: batch/1 (32)
w: parameter:fc.weight (8)
p (32) = mm(x, w) in fc
t (32) = mul(p, y)
q (32) = rsub(p)
f (32) = mul(q, y)
loss () = dot(t, f)
"""


def step(text: str, **facts: dict[str, object]) -> Step:
    (found,) = steps_of(captured(step_of(text, "training", **facts)))
    return found


@pytest.mark.parametrize("has_grad", [True, False])
def test_a_tensor_that_is_taught_and_held_by_nobody(has_grad: bool) -> None:
    found = stray_weights(step(BRANCHES, s={"needs_grad": has_grad}))
    assert [n.shape for n in found] == [(8,)] * has_grad
    for node in found:
        act = first_use(node)
        assert act is not None and act.place is not None and act.place.line == 20


def test_a_branch_that_ends_before_the_loss() -> None:
    whole = step(BRANCHES)
    names = idle_parameters([whole])
    assert names == {"b.weight"}
    (end,) = dead_ends(whole, names)
    assert end.act.place is not None and end.act.place.line == 30


def test_what_another_step_trains_is_not_idle() -> None:
    other = step(BRANCHES.replace("mean(h)", "mean(r)"))
    assert not idle_parameters([step(BRANCHES), other])


@pytest.mark.parametrize(("low", "one", "count"), [(-2.0, 1, 1), (0.0, 1, 0), (-2.0, 2, 0)])
def test_the_complement_of_a_score(low: float, one: int, count: int) -> None:
    y: dict[str, object] = {"low": 0.0, "high": 1.0, "is_whole": True}
    found = step(SCORES, y=y, p={"low": low, "high": 1.0}, q={"settings": {"other": one}})
    assert len(list(complements_of_scores(found))) == count
