"""Stochastic weight averaging on the wine data set."""
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, Subset, TensorDataset

CFG = dict(seed=9, batch=16, epochs=24, swa_start=14, lr=0.05, swa_lr=0.02)


def prepare(cfg):
    wine = load_wine()
    splitter = StratifiedShuffleSplit(n_splits=1, test_size=0.3, random_state=cfg["seed"])
    fit_idx, test_idx = next(splitter.split(wine.data, wine.target))
    x = torch.as_tensor(wine.data, dtype=torch.float32)
    mean, std = x[fit_idx].mean(0), x[fit_idx].std(0)
    full = TensorDataset((x - mean) / std, torch.as_tensor(wine.target))
    fit = DataLoader(Subset(full, fit_idx.tolist()), cfg["batch"], shuffle=True, drop_last=True)
    test = DataLoader(Subset(full, test_idx.tolist()), 64)
    return fit, test


def mlp(d_in, d_out, width=32):
    block = lambda a, b: [nn.Linear(a, b, bias=False), nn.BatchNorm1d(b), nn.ReLU()]
    return nn.Sequential(*block(d_in, width), *block(width, width), nn.Linear(width, d_out))


@torch.no_grad()
def score(net, loader):
    net.eval()
    pairs = [(net(x).argmax(1), y) for x, y in loader]
    return torch.cat([p == y for p, y in pairs]).float().mean().item()


def main(cfg):
    torch.manual_seed(cfg["seed"])
    fit, test = prepare(cfg)
    net = mlp(13, 3)
    swa_net = AveragedModel(net)
    sgd = torch.optim.SGD(net.parameters(), lr=cfg["lr"], momentum=0.9)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=cfg["swa_start"])
    swa_sched = SWALR(sgd, swa_lr=cfg["swa_lr"], anneal_epochs=3)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(cfg["epochs"]):
        net.train()
        for x, y in fit:
            sgd.zero_grad()
            criterion(net(x), y).backward()
            sgd.step()
        if epoch >= cfg["swa_start"]:
            swa_net.update_parameters(net)
            swa_sched.step()
        else:
            cosine.step()

    update_bn(swa_net, fit)
    print(f"plain {score(net, test):.3f}  swa {score(swa_net, test):.3f}")


if __name__ == "__main__":
    main(CFG)
