"""Classify simulated photometry into five object kinds; settings are in config.yaml."""
from pathlib import Path

import numpy as np
import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

HERE = Path(__file__).parent


def simulate(n, bands):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, bands))
    w1 = rng.normal(size=(bands, 12)) / np.sqrt(bands)
    w2 = rng.normal(size=(12, 5))
    scores = np.tanh(2.0 * x @ w1) @ w2
    return torch.tensor(x, dtype=torch.float32), torch.tensor(scores.argmax(1))


def build_model(bands, hidden):
    return nn.Sequential(nn.Linear(bands, hidden), nn.ReLU(),
                         nn.Linear(hidden, hidden), nn.ReLU(),
                         nn.Linear(hidden, 5))


def main():
    with open(HERE / "config.yaml") as f:
        cfg = yaml.safe_load(f)
    cfg["train"]["batch_size"] = 128
    torch.manual_seed(cfg["seed"])
    d, t = cfg["data"], cfg["train"]
    x, y = simulate(d["n_train"] + d["n_test"], d["bands"])
    train = TensorDataset(x[:d["n_train"]], y[:d["n_train"]])
    x_test, y_test = x[d["n_train"]:], y[d["n_train"]:]
    loader = DataLoader(train, batch_size=t["batch_size"], shuffle=True)
    model = build_model(d["bands"], cfg["model"]["hidden"])
    opt = torch.optim.SGD(model.parameters(), lr=t["lr"], momentum=t["momentum"])
    ce = nn.CrossEntropyLoss()
    for epoch in range(t["epochs"]):
        losses = []
        for xb, yb in loader:
            loss = ce(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        with torch.no_grad():
            out = model(x_test)
        print("epoch %d: train_loss=%.4f test_loss=%.4f test_acc=%.4f" % (
            epoch + 1, sum(losses) / len(losses), ce(out, y_test).item(),
            (out.argmax(1) == y_test).float().mean().item()))


if __name__ == "__main__":
    main()
