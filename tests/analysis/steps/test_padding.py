"""Which losses count the padding of a table."""

from __future__ import annotations

from typing import Any

from traindx.analysis.steps.padding import counted_padding
from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.examples import captured, step_of

STEP = """
t: batch/0 (2, 6)
w: parameter:tok.weight (50, 4)
h (2, 6, 4) = embedding(w, t)
p (12, {classes}) = log_softmax(h)
loss () = nll_loss(p, t)
"""


def step(padding: int = 0, ignored: int = -100, classes: int = 50) -> Step:
    facts: dict[str, Any] = {
        "h": {"settings": {"padding_idx": padding}},
        "loss": {"settings": {"reduction": 1, "ignore_index": ignored}},
    }
    (found,) = steps_of(captured(step_of(STEP.format(classes=classes), **facts)))
    return found


def test_the_padding_of_the_table_counts() -> None:
    (found,) = counted_padding(step(padding=3))
    assert (found.token, found.table.label) == (3, "tok.weight")


def test_it_is_ignored_or_not_known() -> None:
    assert not list(counted_padding(step(padding=3, ignored=3)))
    assert not list(counted_padding(step(padding=-1)))
    assert not list(counted_padding(step(classes=9)))
