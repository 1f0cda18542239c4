"""Two data-loading workers; the way they start is the first argument."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        frequency = 1 + index % 3
        phase = torch.rand(1, generator=generator) * 6.28
        wave = torch.sin(torch.linspace(0, 6.28, 32) * frequency + phase)
        return wave + 0.1 * torch.randn(32, generator=generator), index % 3


def main():
    torch.manual_seed(20)
    loader = DataLoader(
        Waves(),
        batch_size=30,
        shuffle=True,
        num_workers=2,
        multiprocessing_context=sys.argv[1],
        persistent_workers=True,
    )
    model = nn.Sequential(
        nn.Unflatten(1, (1, 32)), nn.Conv1d(1, 8, 7), nn.ReLU(), nn.AdaptiveMaxPool1d(4),
        nn.Flatten(), nn.Linear(32, 3),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(6):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item()!r}", flush=True)


if __name__ == "__main__":
    main()
