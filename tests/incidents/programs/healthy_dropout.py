"""Dropout in training only: the training loss lies above the validation loss from end to end.

The log is what Keras draws on a terminal: bars, colours, carriage returns.
"""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed

EPOCHS, STEPS = 30, 40
BOLD, GREEN, PALE, PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[37m", "\x1b[0m"


def bar(step: int, accuracy: float, loss: float) -> str:
    full = 20 * step // STEPS
    drawn = f"{GREEN}{'━' * full}{PLAIN}{PALE}{'━' * (20 - full)}{PLAIN}"
    return (
        f"\r{BOLD}{step:2d}/{STEPS}{PLAIN} {drawn}"
        f" {BOLD}0s{PLAIN} 4ms/step - accuracy: {accuracy:.4f} - loss: {loss:.4f}"
    )


def make(folder: Path) -> None:
    seed(20)
    data, model = digits(), mlp(64, 96, 96, 10, dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    written = ""
    for epoch in range(1, EPOCHS + 1):
        written += f"Epoch {epoch}/{EPOCHS}\n"
        total = right = 0.0
        for step, batch in enumerate(minibatches(len(data.x), 30), start=1):
            logits = model(data.x[batch])
            loss = functional.cross_entropy(logits, data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            right += (logits.argmax(1) == data.y[batch]).float().mean().item()
            if step in (1, 20, 40):
                written += bar(step, right / step, total / step)
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        written += f" - val_accuracy: {accuracy:.4f} - val_loss: {val_loss:.4f}\n"
    (folder / "terminal.log").write_text(written)
