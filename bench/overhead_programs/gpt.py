"""A small decoder of four layers on random tokens: about a tenth of a second per step."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from bench.overhead_programs.job import Job

WORDS, WIDTH, HEADS, LENGTH, LAYERS = 512, 128, 4, 64, 4


class Attention(nn.Module):  # type: ignore[misc,unused-ignore]
    """Every position looks at the ones before it."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.join = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, 3, HEADS, width // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        joined: torch.Tensor = self.join(seen.transpose(1, 2).reshape(batch, length, width))
        return joined


class Block(nn.Module):  # type: ignore[misc,unused-ignore]
    """Attention and a perceptron, each added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.perceptron = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x))
        added: torch.Tensor = x + self.perceptron(self.norm_2(x))
        return added


class Decoder(nn.Module):  # type: ignore[misc,unused-ignore]
    """Tokens in, scores for the token after each of them out: one column per word."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.head(self.norm(x))
        return scores.transpose(1, 2)


def make() -> Job:
    """Build the job."""
    text = torch.randint(0, WORDS, (512, LENGTH + 1))
    data = TensorDataset(text[:, :-1], text[:, 1:])
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loader = DataLoader(data, batch_size=16, shuffle=True)
    return Job(model, nn.CrossEntropyLoss(), optimizer, loader)
