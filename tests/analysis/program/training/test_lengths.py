"""How many batches a loader gives, and which steps no epoch is long enough for."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.lengths import batches_of, number_of, unreached_steps
from traindx.analysis.program.training.loaders import is_loader
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

START = """
import argparse
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=16)
args = parser.parse_args()

class Windows(Dataset):
    def __init__(self, x, width):
        self.x, self.width = x, width
    def __len__(self):
        return len(self.x) - self.width + 1
    def __getitem__(self, i):
        return self.x[i:i + self.width]

x = torch.randn(100, 4)
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"train.py": START + text})).stories[0]


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("DataLoader(TensorDataset(x), 16)", 7),
        ("DataLoader(TensorDataset(x), 16, drop_last=True)", 6),
        ("DataLoader(TensorDataset(x), args.size)", 7),
        ("DataLoader(Windows(x, 5), args.size)", 6),
        ("DataLoader(Windows(x, 5), args.size, sampler=s)", None),
        ("DataLoader(TensorDataset(x), 16, drop_last=flag)", None),
        ("DataLoader(TensorDataset(y), 16)", None),
    ],
)
def test_the_batches_of_an_epoch(made: str, count: int | None) -> None:
    story = _story(f"loader = {made}\nfor batch in loader: pass\n")
    (loader,) = {e.result for e in story.events if is_loader(e.result) and not e.is_own}
    assert loader is not None
    assert batches_of(story, loader) == count


def test_a_number_that_settings_make() -> None:
    story = _story("found = (len(x) - 4) // args.size\n")
    found = [a.value for a in story.execution.assignments if a.name == "found"][-1]
    assert number_of(story, found) == 6


@pytest.mark.parametrize(
    ("test", "is_never"),
    [
        ("(i + 1) % 8 == 0", True),
        ("i % 8 == 0", False),
        ("(i + 1) % 7 == 0", False),
        ("not (i + 1) % args.size", True),
        ("(i + 1) % every == 0", False),
        ("(i + 1) % 8 == 0 or last", False),
    ],
)
def test_a_step_that_never_comes(test: str, is_never: bool) -> None:
    story = _story(
        "model = torch.nn.Linear(4, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for epoch in range(3):\n"
        "    for i, (a,) in enumerate(DataLoader(TensorDataset(x), 16)):\n"
        "        model(a).sum().backward()\n"
        f"        if {test}:\n"
        "            opt.step()\n"
    )
    assert bool(list(unreached_steps(story))) is is_never
