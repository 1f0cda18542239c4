"""Bounds of scores, distances of a tensor to itself, and settings that torch refuses together."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.facts.refused_settings import refused_settings
from traindx.analysis.program.training.facts.score_bounds import bounds_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.self_distances import is_self_distance
from traindx.examples import make_run

START = """
import torch
import torch.nn.functional as F
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler
class Stream(IterableDataset):
    def __iter__(self):
        yield 1
e = model(x)
sq = e.pow(2).sum(1)
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"t.py": f"{START}found = {text}\n"})).stories[0]


def _found(text: str) -> Value:
    assigned = _story(text).execution.assignments
    return [a.value for a in assigned if a.name == "found"][-1]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("torch.tanh(e) * 3", (-3, 3)),
        ("1 - e.sigmoid()", (0, 1)),
        ("F.normalize(e) @ F.normalize(e).T / 0.5", (-2, 2)),
        ("F.cosine_similarity(e, y)", (-1, 1)),
        ("-e.clamp(-2, 5)", (-5, 2)),
        ("F.normalize(e) @ e.T", None),
        ("e.relu()", None),
        ("e.clamp(min=0)", None),
    ],
)
def test_the_bounds_of_scores(text: str, bounds: tuple[float, float] | None) -> None:
    assert bounds_of(_found(text)) == bounds


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("((e[:, None] - e[None]) ** 2).sum(-1)", True),
        ("(e.unsqueeze(0) - e.unsqueeze(1)).square().sum(2).clamp(min=0)", True),
        ("sq[:, None] + sq[None, :] - 2 * e @ e.t()", True),
        ("(sq[:, None] - 2 * (e @ e.T) + sq[None, :]).relu()", True),
        ("sq[:, None] + sq[None, :] - 2 * e @ e.t() + 1e-9", False),
        ("(sq[:, None] + sq[None, :] - 2 * e @ e.t()).clamp(min=1e-9)", False),
        ("((e[:, None] - y[None]) ** 2).sum(-1)", False),
        ("sq[:, None] + other - 2 * e @ y.t()", False),
    ],
)
def test_distances_of_a_tensor_to_itself(text: str, known: bool) -> None:
    assert is_self_distance(_found(text)) is known


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("DataLoader(d, 8, shuffle=True, sampler=RandomSampler(d))", True),
        ("DataLoader(d, 8, batch_sampler=BatchSampler(s, 8, True))", True),
        ("DataLoader(Stream(), 8, shuffle=True)", True),
        ("DataLoader(d, 8, persistent_workers=True)", True),
        ("torch.optim.SGD(model.parameters(), 0.1, nesterov=True)", True),
        ("DataLoader(d, 8, shuffle=s is None, sampler=s)", False),
        ("DataLoader(d, batch_sampler=BatchSampler(s, 8, True))", False),
        ("DataLoader(d, 8, num_workers=2, persistent_workers=True)", False),
        ("torch.optim.SGD(model.parameters(), 0.1, 0.9, nesterov=True)", False),
        ("DataLoader(d, shuffle=True, **more)", False),
    ],
)
def test_settings_that_exclude_each_other(text: str, is_refused: bool) -> None:
    assert bool(list(refused_settings(_story(text)))) is is_refused
