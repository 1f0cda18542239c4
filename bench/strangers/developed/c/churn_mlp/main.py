import json
import pathlib

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.utils.data import DataLoader, TensorDataset

from net import from_config

CFG = json.loads((pathlib.Path(__file__).parent / "config.json").read_text())


def churn_table(n, d, rng):
    x = rng.normal(size=(n, d))
    score = x[:, 0] * x[:, 1] + np.abs(x[:, 2]) - np.abs(x[:, 3]) + 0.3 * x[:, 4]
    y = (score + rng.normal(scale=0.3, size=n) > 0).astype("float32")
    return x.astype("float32"), y


def main(cfg):
    torch.manual_seed(cfg["seed"])
    rng = np.random.default_rng(cfg["seed"])
    x, y = churn_table(cfg["data"]["n"], cfg["data"]["features"], rng)
    xtr, xte, ytr, yte = train_test_split(x, y, test_size=cfg["data"]["test_fraction"], random_state=cfg["seed"], stratify=y)
    mu, sd = xtr.mean(0), xtr.std(0)
    xtr, xte = (xtr - mu) / sd, (xte - mu) / sd

    model = from_config(cfg["model"], x.shape[1], 1)
    o = cfg["optim"]
    opt = torch.optim.Adam(model.parameters(), lr=o["lr"])
    loader = DataLoader(TensorDataset(torch.from_numpy(xtr), torch.from_numpy(ytr)), batch_size=o["batch_size"], shuffle=True)

    for epoch in range(1, o["epochs"] + 1):
        model.train()
        running = 0.0
        for xb, yb in loader:
            opt.zero_grad()
            loss = bce(model(xb).squeeze(-1), yb)
            loss.backward()
            opt.step()
            running += loss.item() * xb.size(0)
        model.eval()
        with torch.no_grad():
            s = torch.sigmoid(model(torch.from_numpy(xte)).squeeze(-1)).numpy()
        print(f"[{epoch}] loss={running / len(xtr):.4f} auc={roc_auc_score(yte, s):.4f}")


if __name__ == "__main__":
    main(CFG)
