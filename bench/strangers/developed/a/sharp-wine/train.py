"""5-fold cross-validation on the wine data, once with plain SGD, once with SAM."""
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from torch import nn

from sam import SAM


def fresh_net():
    return nn.Sequential(nn.Linear(13, 24), nn.ELU(), nn.Linear(24, 3))


def fit(net, x, y, kind, epochs=15, batch=24, lr=0.05):
    if kind == "sam":
        opt = SAM(net.parameters(), torch.optim.SGD, rho=0.05, lr=lr, momentum=0.9)
    else:
        opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(batch):
            def closure():
                opt.zero_grad()
                loss = F.cross_entropy(net(x[idx]), y[idx])
                loss.backward()
                return loss
            opt.step(closure)
    return net


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


def to_tensors(x, y):
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def main():
    X, y = load_wine(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for kind in ("sgd", "sam"):
        scores = []
        for k, (tr, te) in enumerate(folds.split(X, y)):
            torch.manual_seed(k)
            prep = make_pipeline(QuantileTransformer(n_quantiles=50, random_state=0), StandardScaler()).fit(X[tr])
            net = fit(fresh_net(), *to_tensors(prep.transform(X[tr]), y[tr]), kind)
            scores.append(accuracy(net, *to_tensors(prep.transform(X[te]), y[te])))
        print(f"{kind}: {np.mean(scores):.3f} +- {np.std(scores):.3f}")


if __name__ == "__main__":
    main()
