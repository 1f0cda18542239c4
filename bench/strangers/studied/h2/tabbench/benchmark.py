import sys

import torch
import yaml
from torch.nn.functional import cross_entropy

from datasets import load
from networks import MLP

OPTIMIZERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


def run(name, cfg):
    torch.manual_seed(cfg["seed"])
    x_tr, x_te, y_tr, y_te = load(name, seed=cfg["seed"], **cfg["data"])
    model = MLP(x_tr.shape[1], int(y_tr.max()) + 1, **cfg["model"])
    o = cfg["optim"]
    optimizer = OPTIMIZERS[o["name"]](model.parameters(), lr=o["lr"])
    curve = []
    for epoch in range(o["epochs"]):
        for idx in torch.randperm(len(x_tr)).split(o["batch_size"]):
            optimizer.zero_grad()
            loss = cross_entropy(model(x_tr[idx]), y_tr[idx])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            curve.append((model(x_te).argmax(1) == y_te).float().mean().item())
    return loss.item(), curve


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "config.yaml"
    with open(path) as f:
        cfg = yaml.safe_load(f)
    for name in ("moons", "circles"):
        loss, curve = run(name, cfg)
        print(f"{name:8s} final loss {loss:.3f}  test acc best {max(curve):.3f} last {curve[-1]:.3f}")
