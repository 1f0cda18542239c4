"""How data are divided, and what the parts are for."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.data import Role
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.splits import (
    class_labels,
    cut_by_class,
    divisions,
    overlaps,
    redrawn_parts,
    repetition,
    roles_of,
)
from traindx.examples import make_run

START = """
import torch
from sklearn.model_selection import train_test_split
from torch.utils.data import random_split

x, y = load()
n = int(0.8 * len(x))
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"t.py": START + text})).stories[0]


@pytest.mark.parametrize(
    ("text", "is_random"),
    [
        ("a, b = x[:n], x[n:]", False),
        ("a, b = x[:800], x[800:]", False),
        ("a, b = x[:int(0.8 * len(x))], x[int(0.8 * len(x)):]", False),
        ("i = torch.randperm(len(x))\na, b = x[i[:n]], x[i[n:]]", True),
        ("a, b = random_split(x, [8, 2])", True),
        ("a, b, c, d = train_test_split(x, y)", True),
    ],
)
def test_two_parts_of_a_whole(text: str, is_random: bool) -> None:
    found = [d for d in divisions(_story(text + "\n")) if "x" in d.whole.names]
    assert found
    assert found[0].is_random is is_random


@pytest.mark.parametrize("text", ["a, b = x[:n], x[m:]", "a, b = x[:n], y[n:]", "a = x[n:]"])
def test_no_parts_of_a_whole(text: str) -> None:
    assert not list(divisions(_story(text + "\n")))


def test_what_parts_are_for() -> None:
    story = _story("train, test = x[:n], x[n:]\n")
    (division,) = divisions(story)
    assert roles_of(story, division.head) == {Role.TRAIN}
    assert roles_of(story, division.tail) == {Role.HELD_OUT}


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        ("x = np.concatenate([x, x[y == 1]])", True),
        ("x = np.repeat(x, 2, axis=0)", True),
        ("x = np.concatenate([x, x[:, :2]], axis=1)", False),
        ("x = np.concatenate([x, z])", False),
        ("x = x[torch.randperm(len(x))]", False),
    ],
)
def test_rows_that_stand_there_twice(text: str, is_repeated: bool) -> None:
    story = _story(f"import numpy as np\n{text}\nprint(x)\n")
    given = next(e.args[0] for e in story.events if e.name == "builtins.print")
    assert (repetition(given) is not None) is is_repeated


@pytest.mark.parametrize(("end", "start", "shared"), [(80, 70, [10]), (80, 80, []), (70, 80, [])])
def test_cuts_that_overlap(end: int, start: int, shared: list[int]) -> None:
    story = _story(f"x_train, x_test = x[:{end}], x[{start}:]\nprint(x_train, x_test)\n")
    assert [o.shared for o in overlaps(story)] == shared


@pytest.mark.parametrize(("name", "is_label"), [("q", True), ("p", False), ("order", False)])
def test_labels_are_what_a_loss_predicts(name: str, is_label: bool) -> None:
    text = """
p, q = load()
order = p.argsort()
p, q = p[order], q[order]
for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(p[:9], q[:9])):
    torch.nn.functional.cross_entropy(model(a), b).backward()
"""
    program = program_of(make_run(sources={"t.py": START + text}))
    assert any(name in value.names for value in class_labels(program)) is is_label


@pytest.mark.parametrize(
    ("text", "is_redrawn"),
    [
        ("i = torch.randperm(9); train_x = x[i[:n]]\ni = torch.randperm(9); val_x = x[i[n:]]", True),
        ("train_x, _ = random_split(x, [8, 2])\n_, val_x = random_split(x, [8, 2])", True),
        ("i = torch.randperm(9); train_x, val_x = x[i[:n]], x[i[n:]]", False),
        ("g = 1\ntrain_x, _ = random_split(x, [8, 2], generator=g)\n"
         "_, val_x = random_split(x, [8, 2], generator=g)", False),
        ("for fold in range(5):\n    i = torch.randperm(9); train_x, val_x = i[:n], i[n:]", False),
        ("i = torch.randperm(9); train_x = x[i[:n]]\nj = torch.randperm(9); val_x = y[j[n:]]", False),
    ],
)  # fmt: skip
def test_parts_that_two_draws_decide(text: str, is_redrawn: bool) -> None:
    story = _story(f"{text}\nuse(train_x)\nuse(val_x)\n")
    assert bool(list(redrawn_parts(story))) is is_redrawn


@pytest.mark.parametrize(
    ("order", "count"),
    [("y.argsort()", 1), ("torch.argsort(y)", 1), ("times.argsort()", 0), ("mix(y)", 0)],
)
def test_cut_by_class(order: str, count: int) -> None:
    text = f"order = {order}\nx = x[order]\nx_train, x_test = x[:n], x[n:]\n"
    found = list(cut_by_class(_story(text).program))
    assert ["x" in division.whole.names for division, _ in found] == [True] * count
