"""tqdm bars, one carriage return after another, and a line per epoch."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from training import digits, evaluate, minibatches, seed

EPOCHS, STEPS = 8, 60


def make(folder: Path) -> None:
    seed(24)
    data = digits()
    model = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    written = ""
    for epoch in range(1, EPOCHS + 1):
        model.train()
        for step, batch in enumerate(minibatches(len(data.x), 20), start=1):
            logits = model(data.x[batch])
            loss = functional.cross_entropy(logits, data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 6 == 0:
                share = step / STEPS
                full = "█" * int(10 * share)
                accuracy = (logits.argmax(1) == data.y[batch]).float().mean()
                written += (
                    f"\rEpoch {epoch}/{EPOCHS}: {100 * share:3.0f}%|{full:<10}| {step}/{STEPS} "
                    f"[00:0{step // 25}<00:0{(STEPS - step) // 25}, 26.31it/s, "
                    f"loss={loss:.4f}, acc={accuracy:.3f}]"
                )
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        written += f"\nEpoch {epoch}: val_loss={val_loss:.4f} val_acc={accuracy:.4f}\n"
    (folder / "stderr.log").write_text(written)
