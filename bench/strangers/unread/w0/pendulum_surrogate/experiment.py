"""Usage: python experiment.py [key.subkey=value ...]"""
import sys

import torch
import yaml
from torch import nn

BASE = yaml.safe_load("""
seed: 0
epochs: 30
data:
  n: 2000
  batch: 64
model:
  hidden: 16
  depth: 1
optim:
  name: Adam
  lr: 0.0001
  weight_decay: 0.0
""")

NIGHTLY = ["seed=4", "model.hidden=64", "model.depth=2", "optim.lr=0.003"]


def with_overrides(config, assignments):
    config = dict(config)
    for assignment in assignments:
        path, _, raw = assignment.partition("=")
        *parents, leaf = path.split(".")
        node = config
        for key in parents:
            if key not in node:
                raise KeyError(path)
            node = dict(node[key])
        if leaf not in node:
            raise KeyError(path)
        node[leaf] = yaml.safe_load(raw)
    return config


def simulate(state, dt=0.02, steps=25):
    theta, omega = state[:, 0], state[:, 1]
    for _ in range(steps):
        omega = omega - dt * (9.81 * torch.sin(theta) + 0.1 * omega)
        theta = theta + dt * omega
    return torch.stack([theta, omega], 1)


def build_model(m):
    layers, width = [], 2
    for _ in range(m["depth"]):
        layers += [nn.Linear(width, m["hidden"]), nn.Tanh()]
        width = m["hidden"]
    return nn.Sequential(*layers, nn.Linear(width, 2))


def main(assignments):
    cfg = with_overrides(BASE, assignments)
    tag = ",".join(assignments) or "base"
    torch.manual_seed(cfg["seed"])
    x = (torch.rand(cfg["data"]["n"], 2) * 2 - 1) * torch.tensor([2.0, 3.0])
    y = simulate(x)
    cut = int(0.85 * len(x))
    train_x, train_y, valid_x, valid_y = x[:cut], y[:cut], x[cut:], y[cut:]
    model = build_model(cfg["model"])
    o = dict(cfg["optim"])
    optimizer = getattr(torch.optim, o.pop("name"))(model.parameters(), **o)
    for epoch in range(cfg["epochs"]):
        model.train()
        for idx in torch.randperm(cut).split(cfg["data"]["batch"]):
            loss = nn.functional.mse_loss(model(train_x[idx]), train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                v = nn.functional.mse_loss(model(valid_x), valid_y).item()
            print(f"[{tag}] epoch {epoch + 1} valid mse {v:.5f}")
    torch.save({"config": cfg, "weights": model.state_dict()}, "surrogate.pt")


if __name__ == "__main__":
    main(sys.argv[1:] or NIGHTLY)
