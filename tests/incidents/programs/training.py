"""What the programs share: data, two small networks, and a clock that always tells the same time.

Losses, norms and metrics in the artifacts are those of the training that really ran. Durations and
dates are not: they come from `Clock`, so that the same program writes the same bytes twice.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

torch.set_num_threads(1)
LICENSE = Path(__file__).parents[3] / "LICENSE"


def seed(number: int) -> None:
    """Seed every generator that the programs use."""
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


class Split(NamedTuple):
    """Examples to learn from and examples to check with."""

    x: Tensor
    y: Tensor
    x_val: Tensor
    y_val: Tensor


def digits(train: int = 1200, val: int = 597) -> Split:
    """Return the 8x8 digits of scikit-learn, standardised, in a fixed random order."""
    data = load_digits()
    order = np.random.RandomState(0).permutation(len(data.target))
    x = torch.tensor(data.data[order] / 16.0 - 0.5, dtype=torch.float32)
    y = torch.tensor(data.target[order])
    return Split(x[:train], y[:train], x[train : train + val], y[train : train + val])


def mlp(*sizes: int, activation: type[nn.Module] = nn.ReLU, dropout: float = 0.0) -> nn.Sequential:
    """Return linear layers of these sizes with activations between them."""
    layers: list[nn.Module] = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if i < len(sizes) - 2:
            layers.append(activation())
            if dropout:
                layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


def minibatches(count: int, size: int) -> Iterator[Tensor]:
    """Yield the indices of one epoch's shuffled minibatches, the last short one left out."""
    order = torch.randperm(count)
    for start in range(0, count - size + 1, size):
        yield order[start : start + size]


def grad_norm(model: nn.Module) -> float:
    """Return the norm of all gradients together, before any clipping."""
    return float(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Return cross-entropy and accuracy in evaluation mode."""
    was_training = model.training
    model.eval()
    logits = model(x)
    model.train(was_training)
    accuracy = float((logits.argmax(1) == y).float().mean())
    return float(functional.cross_entropy(logits, y)), accuracy


def text() -> tuple[Tensor, Tensor, int]:
    """Return the characters of this project's licence as numbers, and how many there are."""
    characters = LICENSE.read_text()
    letters = sorted(set(characters))
    numbers = torch.tensor([letters.index(c) for c in characters])
    held_out = torch.arange(len(numbers)) // 160 % 10 == 9  # every tenth passage
    return numbers[~held_out], numbers[held_out], len(letters)


def windows(numbers: Tensor, batch: int, length: int = 24) -> Tensor:
    """Return random windows of a text, one character longer than the context."""
    starts = torch.randint(len(numbers) - length - 1, (batch,))
    return torch.stack([numbers[s : s + length + 1] for s in starts])


class CharacterModel(nn.Module):
    """A transformer of one block that predicts the next character."""

    def __init__(self, letters: int, width: int = 48, length: int = 24) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        self.block = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, letters)
        self.register_buffer("mask", torch.triu(torch.full((length, length), -torch.inf), 1))

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the mean loss over a batch of windows."""
        hidden = self.letters(numbers[:, :-1]) + self.places
        logits = self.head(self.block(hidden, src_mask=self.mask, is_causal=True))
        return functional.cross_entropy(logits.flatten(0, 1), numbers[:, 1:].flatten())


class Clock:
    """Durations and dates that look real and are the same every time."""

    def __init__(self, step_s: float, start: str = "2026-03-02 09:14:07") -> None:
        self.step_s = step_s
        self.now = datetime.fromisoformat(start)
        self.jitter = random.Random(7)

    def tick(self, steps: float = 1.0) -> float:
        """Let some steps pass and return the seconds they took."""
        seconds = self.step_s * steps * self.jitter.uniform(0.93, 1.15)
        self.now += timedelta(seconds=seconds)
        return seconds

    def stamp(self, pattern: str = "%Y-%m-%d %H:%M:%S") -> str:
        return self.now.strftime(pattern)


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows with the columns of all of them; what a row lacks stays empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [",".join(columns)]
    lines += [",".join(str(row.get(column, "")) for column in columns) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
