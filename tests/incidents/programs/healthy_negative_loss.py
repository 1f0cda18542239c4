"""A likelihood of a density: the loss passes through 0 and goes on below, as it should."""

from pathlib import Path

import torch
from training import minibatches, mlp, seed, write_csv

EPOCHS = 50


def make(folder: Path) -> None:
    seed(29)
    x = torch.rand(2000, 1) * 4 - 2
    y = torch.sin(2 * x) + 0.05 * torch.randn(2000, 1) * (1 + x.abs())
    model = mlp(1, 48, 48, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)

    def negative_log_likelihood(part: torch.Tensor) -> torch.Tensor:
        mean, log_sigma = model(x[part]).chunk(2, dim=1)
        return (log_sigma + 0.5 * ((y[part] - mean) / log_sigma.exp()).pow(2)).mean()

    rows = []
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in minibatches(1600, 40):
            loss = negative_log_likelihood(batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() / 40
        with torch.no_grad():
            val = negative_log_likelihood(torch.arange(1600, 2000))
        rows.append({"epoch": epoch, "train_nll": f"{total:.5f}", "val_nll": f"{val:.5f}"})
    write_csv(folder / "nll.csv", rows)
