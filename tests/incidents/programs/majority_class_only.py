"""Two per cent positives and weak features: 98 % accuracy, and not one positive is ever found."""

from pathlib import Path

import torch
from sklearn.metrics import f1_score, recall_score
from torch.nn import functional
from training import minibatches, mlp, seed

EPOCHS = 25


def make(folder: Path) -> None:
    seed(62)
    x = torch.randn(5000, 8)
    margin = x[:, 0] + 1.5 * torch.randn(5000)
    y = (margin > margin.quantile(0.98)).float()
    model = mlp(8, 16, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-3)
    lines = [
        f"train 4000 (positives {int(y[:4000].sum())}), val 1000 (positives {int(y[4000:].sum())})"
    ]
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for batch in minibatches(4000, 50):
            loss = functional.binary_cross_entropy_with_logits(model(x[batch]).squeeze(1), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 80
        with torch.no_grad():
            logits = model(x[4000:]).squeeze(1)
            val_loss = functional.binary_cross_entropy_with_logits(logits, y[4000:])
        found, wanted = (logits > 0).float(), y[4000:]
        lines.append(
            f"epoch {epoch}: train_loss={total:.4f} val_loss={val_loss:.4f} "
            f"val_accuracy={(found == wanted).float().mean():.4f} "
            f"val_recall={recall_score(wanted, found, zero_division=0):.4f} "
            f"val_f1={f1_score(wanted, found, zero_division=0):.4f}"
        )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
