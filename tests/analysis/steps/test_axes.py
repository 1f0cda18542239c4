"""Over which dimension an operation works, and views that are taken for a transpose."""

from __future__ import annotations

import pytest

from traindx.analysis.steps.axes import batch_size, normalised_over_examples, reorderings
from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.examples import captured, step_of

SOFTMAX = """
x: batch/0 (32, 8)
w: parameter:fc.weight (10, 8)
o (32, 10) = mm(x, w) in fc
loss (32, 10) = softmax(o)
"""
VIEW = """
x: batch/0 {before}
v {after} = view(x)
loss () = mean(v)
"""


def step(text: str, dim: int = 0) -> Step:
    (found,) = steps_of(captured(step_of(text, loss={"settings": {"dim": dim}})))
    return found


@pytest.mark.parametrize(("dim", "count"), [(0, 1), (-2, 1), (1, 0), (-1, 0)])
def test_a_softmax_over_the_examples(dim: int, count: int) -> None:
    assert len(list(normalised_over_examples(step(SOFTMAX, dim)))) == count


def test_without_a_loader_nobody_knows_the_examples() -> None:
    found = step(SOFTMAX.replace("batch/0", "outside"))
    assert batch_size(found) is None
    assert not list(normalised_over_examples(found))


@pytest.mark.parametrize(
    ("before", "after", "is_reordered"),
    [
        ("(16, 28, 28, 3)", "(16, 3, 28, 28)", True),
        ("(16, 50, 8)", "(50, 16, 8)", True),
        ("(16, 1, 8)", "(16, 8, 1)", False),
        ("(16, 50, 8)", "(800, 8)", False),
        ("(16, 16, 8)", "(16, 16, 8)", False),
    ],
)
def test_a_view_that_swaps_sizes(before: str, after: str, is_reordered: bool) -> None:
    found = step(VIEW.format(before=before, after=after))
    assert bool(list(reorderings([found]))) is is_reordered
