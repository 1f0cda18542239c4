"""Shared-trunk model predicting several material properties from composition features."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.preprocessing import StandardScaler

PROPS = {"band_gap": 1, "bulk_modulus": 1, "elastic": 3}


N_TRAIN = 1200


def synth(n=1500, d=20, seed=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    h = np.tanh(X @ rng.normal(size=(d, 8)) * 0.4)
    Y = {}
    for name, k in PROPS.items():
        y = h @ rng.normal(size=(8, k)) + 0.05 * rng.normal(size=(n, k))
        Y[name] = StandardScaler().fit(y[:N_TRAIN]).transform(y).astype(np.float32)
    return X.astype(np.float32), Y


class PropertyHead(nn.Module):
    def __init__(self, dim, k):
        super().__init__()
        self.fc1 = nn.Linear(dim, dim)
        self.fc2 = nn.Linear(dim, k)

    def forward(self, z):
        return self.fc2(torch.relu(self.fc1(z)))


class MultiTaskNet(nn.Module):
    def __init__(self, n_in, props, dim=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(n_in, 128), nn.SiLU(),
            nn.Linear(128, dim), nn.SiLU(),
        )
        self.heads = {name: PropertyHead(dim, k) for name, k in props.items()}

    def forward(self, x):
        z = self.trunk(x)
        return {name: head(z) for name, head in self.heads.items()}


def total_loss(preds, batch, weights):
    parts = {k: nn.functional.mse_loss(preds[k], batch[k]) for k in preds}
    return sum(weights[k] * v for k, v in parts.items()), parts


def main():
    torch.manual_seed(4)
    X, Y = synth()
    X = torch.from_numpy(X)
    Y = {k: torch.from_numpy(v) for k, v in Y.items()}
    weights = {"band_gap": 1.0, "bulk_modulus": 1.0, "elastic": 0.5}

    model = MultiTaskNet(X.shape[1], PROPS)
    print("trainable parameters:", sum(p.numel() for p in model.parameters()))
    optim = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    sched = torch.optim.lr_scheduler.StepLR(optim, 10, 0.5)

    for epoch in range(30):
        model.train()
        perm = torch.randperm(N_TRAIN)
        for idx in perm.split(64):
            batch = {k: v[idx] for k, v in Y.items()}
            loss, _ = total_loss(model(X[idx]), batch, weights)
            optim.zero_grad()
            loss.backward()
            optim.step()
        sched.step()
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                _, parts = total_loss(model(X[N_TRAIN:]), {k: v[N_TRAIN:] for k, v in Y.items()}, weights)
            print(epoch + 1, {k: round(v.item(), 4) for k, v in parts.items()})
    torch.save({"model": model.state_dict(), "props": PROPS}, "/tmp/multitask.pt")


if __name__ == "__main__":
    main()
