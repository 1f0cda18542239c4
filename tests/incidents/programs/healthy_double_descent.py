"""Epoch-wise double descent: the validation loss falls, rises while the fast features fit what the
slow ones have not explained yet, and falls again to its lowest value.

A linear model by gradient descent on features of two scales, as in the theory of the effect.
"""

from pathlib import Path

import torch
from training import seed

EXAMPLES, FAST, SLOW, EPOCHS = 70, 50, 10, 6000
LOGGED = {round(1.07**k) for k in range(129)} | {0, EPOCHS}


def make(folder: Path) -> None:
    seed(5)
    scale = torch.cat([torch.ones(FAST), torch.full((SLOW,), 0.12)])
    truth = torch.cat([torch.randn(FAST) * 0.5, torch.randn(SLOW) * 4.0])
    x, x_val = (torch.randn(n, FAST + SLOW) * scale for n in (EXAMPLES, 500))
    y = x @ truth + 0.1 * torch.randn(EXAMPLES)
    y_val = x_val @ truth + 0.1 * torch.randn(500)
    weights = torch.zeros(FAST + SLOW, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.12)
    rows = ["epoch,metric,value"]
    for epoch in range(EPOCHS + 1):
        loss = (x @ weights - y).pow(2).mean()
        if epoch in LOGGED:
            with torch.no_grad():
                val_loss = (x_val @ weights - y_val).pow(2).mean()
            rows += [f"{epoch},train_loss,{loss:.6f}", f"{epoch},val_loss,{val_loss:.6f}"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    (folder / "metrics.csv").write_text("\n".join(rows) + "\n")
