"""Fine-tuning of a model that is already good: losses move by a few per cent and should."""

import json
from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed

EPOCHS, RATE = 12, 1e-5


def train(model: torch.nn.Module, rate: float, epochs: int) -> dict[str, list[float]]:
    data = digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    history: dict[str, list[float]] = {
        k: [] for k in ("accuracy", "loss", "val_accuracy", "val_loss")
    }
    for _ in range(epochs):
        for batch in minibatches(len(data.x), 40):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        measured = (*evaluate(model, data.x, data.y), *evaluate(model, data.x_val, data.y_val))
        for key, value in zip(
            ("loss", "accuracy", "val_loss", "val_accuracy"), measured, strict=True
        ):
            history[key].append(round(value, 6))
    return history


def make(folder: Path) -> None:
    seed(9)
    model = mlp(64, 48, 10)
    train(model, 3e-3, 8)  # the pretrained checkpoint
    history = train(model, RATE, EPOCHS)
    (folder / "history.json").write_text(json.dumps(history))
    settings = {
        "learning_rate": RATE,
        "epochs": EPOCHS,
        "batch_size": 40,
        "init_from": "checkpoints/digits-base.keras",
    }
    (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n")
