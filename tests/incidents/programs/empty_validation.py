"""The split left nothing to validate on: the mean of nothing is NaN, training itself is fine."""

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from training import digits, minibatches, mlp, seed


def make(folder: Path) -> None:
    seed(56)
    data, model = digits(val=0), mlp(64, 48, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    lines = [f"train samples: {len(data.x)}", f"val samples: {len(data.x_val)}"]
    for epoch in range(1, 13):
        total = 0.0
        for batch in minibatches(len(data.x), 40):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 30
        noticed = io.StringIO()
        with contextlib.redirect_stderr(noticed), warnings.catch_warnings():
            warnings.simplefilter("default" if epoch == 1 else "ignore")
            val_loss = float(np.mean([]))
            accuracy = float(np.mean([]))
        paths = str(Path(np.__file__).parents[1])
        lines += noticed.getvalue().replace(paths, "/opt/conda/site-packages").rstrip().splitlines()
        lines.append(
            f"epoch {epoch:2d} train_loss {total:.4f}"
            f" val_loss {val_loss:.4f} val_acc {accuracy:.4f}"
        )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
