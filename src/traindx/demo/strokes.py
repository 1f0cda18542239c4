"""Trains a small network to tell ten strokes apart; one line is missing from its loop.

`traindx demo` copies it, rides along, finds the line and proves that it is the cause.
"""

import torch
import torch.nn.functional as F
from torch import nn


def strokes(count, generator):
    """Return noisy 8x8 pictures of ten strokes, and which stroke each one shows."""
    patterns = torch.rand(10, 64, generator=torch.Generator().manual_seed(7))
    labels = torch.randint(0, 10, (count,), generator=generator)
    noise = 0.35 * torch.randn(count, 64, generator=generator)
    return patterns[labels] - 0.5 + noise, labels


def main():
    """Train, and print a line every few steps."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(1, 241):
        images, labels = strokes(64, generator)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if step % 24 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
