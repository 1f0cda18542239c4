import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold

SEED, FOLDS, EPOCHS, BS = 2024, 3, 25, 16
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Scaler:
    """Robust scaling on the device, so raw features are uploaded only once."""

    def fit(self, x):
        self.med = x.median(0).values
        self.iqr = x.quantile(0.75, 0) - x.quantile(0.25, 0)
        return self

    def transform(self, x):
        return ((x - self.med) / self.iqr.clamp(min=1e-6)).clamp(-4, 4)


def batches(x, y, scaler, bs, shuffle, noise=0.0):
    order = torch.randperm(len(x), device=x.device) if shuffle else torch.arange(len(x), device=x.device)
    with torch.no_grad():
        for chunk in order.split(bs):
            xb = scaler.transform(x[chunk])
            if noise:
                xb = xb + noise * torch.randn_like(xb)
            yield xb, y[chunk]


def build_mlp(n_in, n_out):
    return nn.Sequential(
        nn.Linear(n_in, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(32, n_out),
    ).to(DEVICE)


def score(model, x, y, scaler):
    model.eval()
    hits = 0
    with torch.no_grad():
        for xb, yb in batches(x, y, scaler, 64, shuffle=False):
            hits += (model(xb).argmax(1) == yb).sum().item()
    return hits / len(x)


def fit_fold(x_tr, y_tr, x_va, y_va):
    scaler = Scaler().fit(x_tr)
    model = build_mlp(x_tr.shape[1], 3)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-2, total_steps=EPOCHS * -(-len(x_tr) // BS))
    crit = nn.CrossEntropyLoss(label_smoothing=0.05)
    print("  before fit", round(score(model, x_va, y_va, scaler), 3))
    for _ in range(EPOCHS):
        model.train()
        for xb, yb in batches(x_tr, y_tr, scaler, BS, shuffle=True, noise=0.05):
            opt.zero_grad(set_to_none=True)
            loss = crit(model(xb), yb)
            loss.backward()
            opt.step()
            sched.step()
    return score(model, x_va, y_va, scaler)


def main():
    torch.manual_seed(SEED)
    X, y = load_wine(return_X_y=True)
    X = torch.tensor(X, dtype=torch.float32, device=DEVICE)
    y = torch.tensor(y, device=DEVICE)
    scores = []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    for k, (tr, va) in enumerate(folds.split(np.zeros(len(y)), y.cpu().numpy())):
        print(f"fold {k}")
        scores.append(fit_fold(X[tr], y[tr], X[va], y[va]))
        print(f"  accuracy {scores[-1]:.4f}")
    print(f"CV {np.mean(scores):.4f} +- {np.std(scores):.4f}")


if __name__ == "__main__":
    main()
