"""Logistic regression on data that is half exclusive-or: both accuracies stop at two thirds."""

from pathlib import Path

import torch
from torch.nn import functional
from training import grad_norm, minibatches, seed, write_csv

EPOCHS = 60


def make(folder: Path) -> None:
    seed(57)
    x = torch.randn(3000, 2) + 0.25
    y = (x[:, 0] * x[:, 1] > 0).float().unsqueeze(1)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    score = functional.binary_cross_entropy_with_logits
    rows = []
    for epoch in range(1, EPOCHS + 1):
        for batch in minibatches(2000, 40):
            loss = score(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        row = {"epoch": epoch, "lr": 3e-3}
        for name, part in (("train", slice(0, 2000)), ("val", slice(2000, 3000))):
            optimizer.zero_grad()
            logits = model(x[part])
            loss = score(logits, y[part])
            loss.backward()
            if name == "train":
                row["grad_norm"] = f"{grad_norm(model):.5f}"
            right = ((logits > 0).float() == y[part]).float().mean()
            row |= {f"{name}_loss": f"{loss:.5f}", f"{name}_accuracy": f"{right:.4f}"}
        rows.append(row)
    write_csv(folder / "history.csv", rows)
    (folder / "config.yaml").write_text(
        "model:\n  type: logistic_regression\n  inputs: 2\nlr: 0.003\nbatch_size: 40\nepochs: 60\n"
    )
