"""Twenty examples to validate on: the validation loss is noise around a falling trend."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed

EPOCHS = 40


def make(folder: Path) -> None:
    seed(19)
    data, model = digits(val=20), mlp(64, 24, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.08)
    lines = [f"train: {len(data.x)} examples, validation: {len(data.x_val)} examples"]
    for epoch in range(1, EPOCHS + 1):
        total = right = 0.0
        for batch in minibatches(len(data.x), 8):
            x = data.x[batch] + 0.3 * torch.randn(8, 64)
            logits = model(x)
            loss = functional.cross_entropy(logits, data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 150
            right += (logits.argmax(1) == data.y[batch]).float().mean().item() / 150
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        lines += [
            f"Epoch {epoch}/{EPOCHS}",
            f"150/150 - 1s - 5ms/step - accuracy: {right:.4f} - loss: {total:.4f}"
            f" - val_accuracy: {accuracy:.4f} - val_loss: {val_loss:.4f}",
        ]
    (folder / "nohup.out").write_text("\n".join(lines) + "\n")
