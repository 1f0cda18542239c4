import json
import math

import numpy as np
import torch
from torch import nn

from dp import PrivateGradients
from net import ResidualMLP

CONFIG = json.loads("""
{"n": 4000, "sample_rate": 0.05, "max_norm": 0.1, "noise": 0.8, "lr": 0.6, "steps": 160, "seed": 0}
""")


def income(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10)).astype(np.float32)
    score = 1.5 * x[:, 0] - x[:, 1] + 1.2 * x[:, 2] * x[:, 3]
    y = (score + 0.3 * rng.normal(size=n) > 0).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


def main(cfg):
    torch.manual_seed(cfg["seed"])
    x, y = income(cfg["n"], 0)
    x_test, y_test = income(1000, 1)
    model = ResidualMLP(x.shape[1])
    loss_fn = nn.BCEWithLogitsLoss()
    expected = cfg["n"] * cfg["sample_rate"]
    private = PrivateGradients(model, loss_fn, cfg["max_norm"], cfg["noise"], expected)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"])
    for step in range(1, cfg["steps"] + 1):
        chosen = torch.rand(cfg["n"]) < cfg["sample_rate"]
        median = private.fill(x[chosen], y[chosen])
        optimizer.step()
        if step % 40 == 0:
            with torch.no_grad():
                logits = model(x_test)
                acc = ((logits > 0).float() == y_test).float().mean().item()
            print(f"step {step}: test loss {loss_fn(logits, y_test).item():.4f} acc {acc:.3f} "
                  f"median sample norm {median:.2f}")
    print(f"noise per step on the mean gradient: {cfg['noise'] * cfg['max_norm'] / math.floor(expected):.5f}")


if __name__ == "__main__":
    main(CONFIG)
