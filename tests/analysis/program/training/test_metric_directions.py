"""Whether a number is a loss or a score."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.metric_directions import Metric, metric_of
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("total / len(loader)", Metric.LOSS),
        ("right / seen", Metric.SCORE),
        ("100 * right / seen", Metric.SCORE),
        ("1 - right / seen", None),
        ("-total", None),
        ("total + right", None),
        ("measure(model)", None),
    ],
)
def test_metrics(value: str, expected: Metric | None) -> None:
    text = f"""
import torch
from torch import nn
model = nn.Linear(4, 2)
total = right = seen = 0
for x, y in loader:
    out = model(x)
    total += nn.functional.cross_entropy(out, y).item()
    right += (out.argmax(1) == y).sum().item()
    seen += len(y)
print({value})
"""
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    given = next(e for e in story.events if e.name == "builtins.print").args[0]
    assert metric_of(given) is expected
