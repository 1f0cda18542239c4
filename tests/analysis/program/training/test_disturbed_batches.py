"""Which batches are what the dataset gave, and which were changed at random on the way."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.data import feeds
from traindx.analysis.program.training.disturbed_batches import disturbed_batch
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import functools
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

class Clips(Dataset):
    def __init__(self, rows):
        self.items = [(torch.from_numpy(np.load(p)), int(k)) for p, k in rows]
    def __len__(self):
        return len(self.items)
    def __getitem__(self, i):
        return self.items[i]

def holes(x):
    x = x.clone()
    start = random.randint(0, 20)
    x[:, start:start + 8] = 0
    return x

def collate(batch, shake=True):
    xs, ys = zip(*batch)
    {body}

class Collate:
    def __init__(self, shake):
        self.shake = shake
    def __call__(self, batch):
        return collate(batch, self.shake)

loader = DataLoader(Clips(rows), batch_size=8, collate_fn={collate})
for x, y in loader:
    print(x)
"""
PLAIN = "return torch.stack(xs), torch.tensor(ys)"


@pytest.mark.parametrize(
    ("body", "collate", "is_changed"),
    [
        ("return torch.stack([holes(x) for x in xs]), torch.tensor(ys)", "collate", True),
        ("return torch.stack([holes(x) for x in xs]), torch.tensor(ys)", "Collate(True)", True),
        (
            "out = torch.zeros(8, 40, 90)\n"
            "    for i, x in enumerate(xs):\n        out[i, :, :x.size(1)] = holes(x)\n"
            "    return out, torch.tensor(ys)",
            "collate",
            True,
        ),
        (
            "x = torch.stack(xs)\n    if shake:\n        x = x + 0.1 * torch.randn_like(x)\n"
            "    return x, torch.tensor(ys)",
            "functools.partial(collate, shake=True)",
            True,
        ),
        (
            "x = torch.stack(xs)\n    x *= np.random.uniform(0.8, 1.2)\n"
            "    return x, torch.tensor(ys)",
            "collate",
            True,
        ),
        (
            "x = torch.stack(xs)\n    return x.roll(random.randint(-4, 4), 2), torch.tensor(ys)",
            "lambda batch: collate(batch)",
            True,
        ),
        (PLAIN, "collate", False),
        (  # the same with shaking switched off
            "x = torch.stack(xs)\n    if shake:\n        x = x + 0.1 * torch.randn_like(x)\n"
            "    return x, torch.tensor(ys)",
            "functools.partial(collate, shake=False)",
            False,
        ),
        (  # what was covered is to be found again
            "x = torch.stack(xs)\n    return torch.stack([holes(x) for x in xs]), x",
            "collate",
            False,
        ),
        (  # a window of each
            "at = random.randint(0, 9)\n    x = torch.stack([x[:, at:at + 30] for x in xs])\n"
            "    return x, torch.tensor(ys)",
            "collate",
            False,
        ),
        (  # the change is what is to be told
            "k = random.randint(0, 3)\n    x = torch.stack(xs).roll(k, 2)\n"
            "    return x, torch.full((8,), k)",
            "collate",
            False,
        ),
    ],
)
def test_what_a_collate_function_changes(body: str, collate: str, is_changed: bool) -> None:
    story = program_of(script(PROGRAM, body=body, collate=collate)).stories[0]
    (feed,) = feeds(story)
    assert feed.example is not None
    assert (disturbed_batch(feed.example) is not None) is is_changed
