"""Nested evaluation of an MLP on the wine data: imputation, scaling and selection inside of every fold."""
import copy

import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn


def t(a, dtype=torch.float32):
    return torch.as_tensor(np.asarray(a), dtype=dtype)


def make_net(d, k):
    return nn.Sequential(nn.Linear(d, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, k))


def train(x, y, xv, yv, seed, epochs=60):
    torch.manual_seed(seed)
    net = make_net(x.shape[1], 3)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    best, best_state = np.inf, None
    for _ in range(epochs):
        net.train()
        for idx in torch.randperm(len(x)).split(32):
            opt.zero_grad()
            nn.functional.cross_entropy(net(x[idx]), y[idx]).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            v = nn.functional.cross_entropy(net(xv), yv).item()
        if v < best:
            best, best_state = v, copy.deepcopy(net.state_dict())
    net.load_state_dict(best_state)
    return net.eval()


def main():
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.05] = np.nan
    oof = np.zeros(len(y), dtype=int)
    outer = StratifiedKFold(5, shuffle=True, random_state=0)
    for fold, (tr, te) in enumerate(outer.split(X, y)):
        fit_idx, stop_idx = train_test_split(tr, test_size=0.2, stratify=y[tr], random_state=fold)
        prep = make_pipeline(SimpleImputer(), StandardScaler(), SelectKBest(f_classif, k=9))
        a = t(prep.fit_transform(X[fit_idx], y[fit_idx]))
        b, c = t(prep.transform(X[stop_idx])), t(prep.transform(X[te]))
        net = train(a, t(y[fit_idx], torch.long), b, t(y[stop_idx], torch.long), seed=fold)
        with torch.no_grad():
            oof[te] = net(c).argmax(1).numpy()
        print(f"fold {fold} accuracy {(oof[te] == y[te]).mean():.3f}")
    print(f"out-of-fold accuracy {(oof == y).mean():.3f}")

    # final model for delivery; it gets no score of its own, the out-of-fold figure is reported
    prep = make_pipeline(SimpleImputer(), StandardScaler(), SelectKBest(f_classif, k=9))
    i, j = train_test_split(np.arange(len(y)), test_size=0.1, stratify=y, random_state=0)
    prep.fit(X[i], y[i])
    net = train(t(prep.transform(X[i])), t(y[i], torch.long), t(prep.transform(X[j])), t(y[j], torch.long), seed=99)
    print("delivered", sum(p.numel() for p in net.parameters()), "parameters")


if __name__ == "__main__":
    main()
