"""What is switched, set or shuffled, and whether it has the effect that was meant."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.counters import half_reset, quotients
from traindx.analysis.program.training.default_dtype import default_dtype
from traindx.analysis.program.training.gradient_switches import left_off
from traindx.analysis.program.training.modes import overwritten_modes
from traindx.analysis.program.training.precision import type_named
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.shuffled_copies import dropped_shuffles
from traindx.analysis.program.training.updates import period_of
from traindx.examples import make_run

START = """
import numpy as np
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, kept):
        super().__init__()
        self.training = kept
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"t.py": START + text})).stories[0]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("pass", "float32"),
        ("torch.set_default_dtype(torch.bfloat16)", "bfloat16"),
        ("was = torch.get_default_dtype()\ntorch.set_default_dtype(torch.float64)\n"
         "torch.set_default_dtype(was)", "float32"),
        ("if flag: torch.set_default_dtype(torch.float16)", ""),
        ("torch.set_default_dtype(dtype)", ""),
    ],
)  # fmt: skip
def test_the_default_type(text: str, dtype: str) -> None:
    assert default_dtype(_story(text), 10_000, type_named) == dtype


@pytest.mark.parametrize(
    ("kept", "is_lost"),
    [("{'noise': 1}", True), ("'fast'", True), ("True", False), ("flag", False)],
)
def test_a_mode_that_is_overwritten(kept: str, is_lost: bool) -> None:
    story = _story(f"net = Net({kept})\nnet.train()\n")
    assert bool(list(overwritten_modes(story))) is is_lost


@pytest.mark.parametrize(
    ("line", "is_dropped"),
    [
        ("np.random.permutation(rows)", True),
        ("rows = np.random.permutation(rows)", False),
        ("np.random.shuffle(rows)", False),
        ("np.random.permutation(8)", False),
    ],
)
def test_a_shuffle_that_is_dropped(line: str, is_dropped: bool) -> None:
    story = _story(f"{line}\nfor x in rows:\n    model(x).sum().backward()\n")
    assert bool(list(dropped_shuffles(story))) is is_dropped


LOOP = """
def check():
    torch.set_grad_enabled(False)
    score = model(held).sum().item()
    {end}
for x in rows:
    model(x).sum().backward()
    check()
"""
ON = "torch.set_grad_enabled(True)"


@pytest.mark.parametrize(
    ("end", "is_left"),
    [
        (f"if score < 1: return\n    {ON}", True),
        (f"if score < 1: {ON}", True),
        (ON, False),
        (f"if flag: {ON}", False),
        (f"if score < 1: {ON}\n    else: {ON}", False),
    ],
)
def test_gradients_that_are_left_off(end: str, is_left: bool) -> None:
    assert bool(list(left_off(_story(LOOP.format(end=end))))) is is_left


@pytest.mark.parametrize(
    ("before", "top", "which"),
    [
        ("seen = 0", "total = 0.0", {"below"}),
        ("total = 0.0", "seen = 0", {"above"}),
        ("", "total, seen = 0.0, 0", {""}),
        ("total, seen = 0.0, 0", "pass", {""}),
        ("total, seen = 0.0, 0", "if flag: seen = 0", {""}),
    ],
)
def test_a_mean_of_which_one_part_goes_on(before: str, top: str, which: set[str]) -> None:
    story = _story(
        f"{before}\nfor epoch in range(3):\n    {top}\n    for x in rows:\n"
        "        total += model(x).sum().item()\n        seen += len(x)\n"
        "    print(total / max(1, seen))\n"
    )
    assert {half_reset(story, *found) for found in quotients(story)} - {""} == which - {""}


@pytest.mark.parametrize(
    ("reset", "is_period"), [("n = 0", True), ("pass", False), ("n = 1", False)]
)
def test_a_period_that_a_counter_makes(reset: str, is_period: bool) -> None:
    story = _story(
        "n = 0\nfor x in rows:\n    model(x).sum().backward()\n    n += 1\n"
        f"    if n == 4:\n        opt.step()\n        {reset}\n"
    )
    found = period_of(story, story.does(Do.STEP)[0].event)
    assert (found is not None) is is_period
