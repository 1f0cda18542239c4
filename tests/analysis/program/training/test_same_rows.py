"""Whether two loaders hand out the same rows."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.loaders import is_loader
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.same_rows import same_rows
from traindx.examples import make_run

TEXT = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, part, noise=0.0):
        data = np.load("data.npy")
        order = {order}
        keep = {keep}
        self.x, self.y, self.noise = data[keep, 1:], data[keep, 0], noise
    def __getitem__(self, i):
        x = self.x[i]
        if self.noise:
            x = x + self.noise * torch.randn(4)
        return x, {label}

one = DataLoader(Rows("train", 0.1))
two = DataLoader(Rows("test"))
"""
SEEDED = "np.random.default_rng(0).permutation(len(data))"


@pytest.mark.parametrize(
    ("order", "keep", "label", "known"),
    [
        (SEEDED, "order[:80]", "self.y[i]", True),
        (SEEDED, "order[:80] if part == 'train' else order[80:]", "self.y[i]", False),
        ("np.random.permutation(len(data))", "order[:80]", "self.y[i]", False),
        (SEEDED, "order[:80]", "0", False),
        (SEEDED, "choose(order, part)", "self.y[i]", False),
    ],
)
def test_the_same_rows(order: str, keep: str, label: str, known: bool) -> None:
    text = TEXT.format(order=order, keep=keep, label=label)
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    one, two = [e.result for e in story.events if is_loader(e.result) and not e.is_own]
    assert one is not None
    assert two is not None
    assert same_rows(story, one, two) is known
