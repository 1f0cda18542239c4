"""Joint model for the listings team: price, days-on-market and condition from the same features."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_regression
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, Subset, TensorDataset

N_TRAIN = 3200
TASKS = {
    "price": {"dim": 1, "kind": "reg", "weight": 1.0},
    "days": {"dim": 1, "kind": "reg", "weight": 0.5},
    "condition": {"dim": 4, "kind": "cls", "weight": 1.0},
}


def load():
    X, Y = make_regression(4000, 24, n_informative=16, n_targets=3, noise=5.0, random_state=2)
    X = StandardScaler().fit(X[:N_TRAIN]).transform(X)
    Y = StandardScaler().fit(Y[:N_TRAIN]).transform(Y)
    cond = (Y[:, 2] > -0.7).astype(int) + (Y[:, 2] > 0) + (Y[:, 2] > 0.7)
    X = torch.tensor(X, dtype=torch.float32)
    return TensorDataset(X, torch.tensor(Y[:, :1], dtype=torch.float32),
                         torch.tensor(Y[:, 1:2], dtype=torch.float32), torch.tensor(cond))


class Head(nn.Module):
    def __init__(self, d, out):
        super().__init__()
        self.l1 = nn.Linear(d, 32)
        self.l2 = nn.Linear(32, out)

    def forward(self, h):
        return self.l2(F.relu(self.l1(h)))


class SharedBottom(nn.Module):
    def __init__(self, d_in, tasks, width=96):
        super().__init__()
        self.tasks = tasks
        self.trunk = nn.Sequential(
            nn.Linear(d_in, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
        )
        self.heads = {name: Head(width, spec["dim"]) for name, spec in tasks.items()}

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def multitask_loss(out, targets, tasks):
    parts = {}
    for name, spec in tasks.items():
        fn = F.mse_loss if spec["kind"] == "reg" else F.cross_entropy
        parts[name] = fn(out[name], targets[name])
    total = sum(tasks[n]["weight"] * v for n, v in parts.items())
    return total, {n: v.item() for n, v in parts.items()}


def run(epochs=8):
    torch.manual_seed(0)
    ds = load()
    train_ds, val_ds = Subset(ds, range(N_TRAIN)), Subset(ds, range(N_TRAIN, len(ds)))
    train = DataLoader(train_ds, 128, shuffle=True)
    val = DataLoader(val_ds, 800)
    model = SharedBottom(24, TASKS)
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    n_par = sum(p.numel() for p in model.parameters())
    print(f"{n_par / 1e3:.1f}k parameters")

    for ep in range(epochs):
        model.train()
        for x, price, days, cond in train:
            optim.zero_grad()
            loss, _ = multitask_loss(model(x), {"price": price, "days": days, "condition": cond}, TASKS)
            loss.backward()
            optim.step()
        model.eval()
        with torch.no_grad():
            x, price, days, cond = next(iter(val))
            out = model(x)
            _, parts = multitask_loss(out, {"price": price, "days": days, "condition": cond}, TASKS)
            acc = (out["condition"].argmax(1) == cond).float().mean().item()
        print(ep, {k: round(v, 4) for k, v in parts.items()}, f"condition acc {acc:.3f}")
    torch.save(model.state_dict(), "/tmp/shared_bottom.pt")


if __name__ == "__main__":
    run()
