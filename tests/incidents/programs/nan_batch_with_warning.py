"""A sensor stood still for one file: its standard deviation is 0, NumPy warns, the batch is NaN."""

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from training import grad_norm, mlp, seed


def load_window(random: np.random.RandomState, *, is_stuck: bool) -> np.ndarray:
    """Return a standardised window of sensor readings."""
    readings = random.normal(20.0, 3.0, (32, 6))
    if is_stuck:
        readings[:, 2] = 0.0
    return (readings - readings.mean(0)) / readings.std(0)


def make(folder: Path) -> None:
    seed(47)
    random, model = np.random.RandomState(47), mlp(6, 24, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    lines = []
    for step in range(1, 241):
        noticed = io.StringIO()
        with contextlib.redirect_stderr(noticed), warnings.catch_warnings():
            warnings.simplefilter("default")
            window = load_window(random, is_stuck=step == 143)
        if noticed.getvalue():
            shown = noticed.getvalue().replace(str(Path(__file__).parent), "/home/ana/pump")
            lines += shown.replace(Path(__file__).name, "loader.py").rstrip().splitlines()
        x = torch.tensor(window, dtype=torch.float32)
        y = x[:, :1] * 0.7 - x[:, 1:2] + 0.1 * torch.randn(32, 1)
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norm = grad_norm(model)
        optimizer.step()
        if step % 3 == 0 or 138 < step < 150:
            lines.append(f"step {step} | loss {loss:.5f} | grad_norm {norm:.5f}")
    (folder / "stderr.log").write_text("\n".join(lines) + "\n")
