"""NN baseline, 5-fold CV. Ported from my Keras notebook (Dense -> BN -> Dropout)."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold
from sklearn.preprocessing import RobustScaler

CFG = dict(units=[128, 64, 32], dropout=0.1, lr=3e-3, epochs=25, bs=128, folds=5, seed=2024)


def seed_everything(s):
    np.random.seed(s)
    torch.manual_seed(s)


class Dense(nn.Module):
    def __init__(self, n_in, units, activation=None, batchnorm=False, dropout=0.0):
        super().__init__()
        self.linear = nn.Linear(n_in, units)
        self.bn = nn.BatchNorm1d(units) if batchnorm else None
        self.activation = activation
        self.dropout = nn.Dropout(dropout) if dropout > 0 else None

    def forward(self, x):
        x = self.linear(x)
        if self.bn is not None:
            x = self.bn(x)
        if self.activation is not None:
            x = self.activation(x)
        if self.dropout is not None:
            x = self.dropout(x)
        return x


def build_model(n_in):
    layers, prev = [], n_in
    for u in CFG["units"]:
        layers.append(Dense(prev, u, batchnorm=True, dropout=CFG["dropout"]))
        prev = u
    layers.append(Dense(prev, 1))
    return nn.Sequential(*layers)


def predict(model, X):
    model.eval()
    with torch.no_grad():
        return model(X).squeeze(1).numpy()


def fit_fold(Xtr, ytr, Xva, yva):
    model = build_model(Xtr.shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
    sched = torch.optim.lr_scheduler.OneCycleLR(
        opt, max_lr=CFG["lr"], epochs=CFG["epochs"], steps_per_epoch=len(Xtr) // CFG["bs"])
    loss_fn = nn.MSELoss()
    for _ in range(CFG["epochs"]):
        model.train()
        perm = torch.randperm(len(Xtr))
        for b in range(len(Xtr) // CFG["bs"]):
            idx = perm[b * CFG["bs"]:(b + 1) * CFG["bs"]]
            opt.zero_grad()
            loss = loss_fn(model(Xtr[idx]), ytr[idx].unsqueeze(1))
            loss.backward()
            opt.step()
            sched.step()
    pred = predict(model, Xva)
    return float(np.sqrt(np.mean((pred - yva) ** 2))), pred


if __name__ == "__main__":
    seed_everything(CFG["seed"])
    X, y = make_friedman1(3000, 12, noise=0.5, random_state=0)
    oof = np.zeros(len(y))
    for k, (tr, va) in enumerate(KFold(CFG["folds"], shuffle=True, random_state=CFG["seed"]).split(X)):
        sc = RobustScaler().fit(X[tr])
        mu, sd = y[tr].mean(), y[tr].std()
        Xtr = torch.tensor(sc.transform(X[tr]), dtype=torch.float32)
        Xva = torch.tensor(sc.transform(X[va]), dtype=torch.float32)
        ytr = torch.tensor((y[tr] - mu) / sd, dtype=torch.float32)
        score, pred = fit_fold(Xtr, ytr, Xva, (y[va] - mu) / sd)
        oof[va] = pred * sd + mu
        print(f"fold {k}: rmse {score * sd:.4f}")
    print("OOF rmse", np.sqrt(np.mean((oof - y) ** 2)))
