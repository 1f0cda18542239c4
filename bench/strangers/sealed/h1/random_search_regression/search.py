import copy

import numpy as np
import torch
from sklearn.datasets import make_friedman1
from torch import nn, optim

X, y = make_friedman1(n_samples=1500, n_features=10, noise=0.5, random_state=1)
X = torch.tensor(X, dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
X_tr, y_tr, X_va, y_va = X[:1100], y[:1100], X[1100:], y[1100:]

rng = np.random.default_rng(11)


def log_uniform(low, high):
    return float(np.exp(rng.uniform(low, high)))


def sample_trial():
    return {
        "lr": log_uniform(-3.0, -1.3),
        "width": int(rng.choice([32, 64, 96])),
        "depth": int(rng.integers(2, 5)),
        "batch": int(rng.choice([32, 64])),
        "act": str(rng.choice(["relu", "tanh"])),
    }


def build(trial):
    act = {"relu": nn.ReLU, "tanh": nn.Tanh}[trial["act"]]
    mods, n = [], X.shape[1]
    for _ in range(trial["depth"]):
        mods += [nn.Linear(n, trial["width"]), act()]
        n = trial["width"]
    return nn.Sequential(*mods, nn.Linear(n, 1), nn.Flatten(0))


def run_trial(trial, max_epochs=8):
    torch.manual_seed(0)
    net = build(trial)
    opt = optim.Adam(net.parameters(), lr=trial["lr"])
    best, best_state = float("inf"), None
    for epoch in range(max_epochs):
        net.train()
        for idx in torch.randperm(len(X_tr)).split(trial["batch"]):
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(X_tr[idx]), y_tr[idx])
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(net(X_va), y_va).item()
        if val < best:
            best, best_state = val, copy.deepcopy(net.state_dict())
    return best, best_state


results = []
for t in range(5):
    trial = sample_trial()
    score, state = run_trial(trial)
    results.append((score, trial))
    print(f"trial {t}: val mse {score:.3f}  width={trial['width']} depth={trial['depth']} "
          f"batch={trial['batch']} act={trial['act']}")

results.sort(key=lambda r: r[0])
print("best:", round(results[0][0], 4), results[0][1])
