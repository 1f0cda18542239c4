import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import config

EXPERIMENT = """
lr: 0.4
epochs: 10
batch_size: 16
seed: 8
"""


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def data(seed):
    X, y = load_wine(return_X_y=True)
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    sc = StandardScaler().fit(Xa)
    to_t = lambda x, t: (torch.tensor(sc.transform(x), dtype=torch.float32), torch.tensor(t))
    return to_t(Xa, ya), to_t(Xb, yb)


def main():
    cfg = config.load(EXPERIMENT)
    torch.manual_seed(cfg["seed"])
    (xa, ya), (xb, yb) = data(cfg["seed"])
    net = mlp([xa.shape[1], *cfg["hidden"], 3])
    opt = getattr(torch.optim, cfg["optimizer"])(net.parameters(), lr=cfg["lr"], rho=cfg["rho"])
    for epoch in range(cfg["epochs"]):
        net.train()
        for i in torch.randperm(len(ya)).split(cfg["batch_size"]):
            opt.zero_grad()
            F.cross_entropy(net(xa[i]), ya[i]).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            train_loss = F.cross_entropy(net(xa), ya).item()
            acc = (net(xb).argmax(1) == yb).float().mean().item()
        print(f"{epoch + 1}/{cfg['epochs']} train {train_loss:.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
