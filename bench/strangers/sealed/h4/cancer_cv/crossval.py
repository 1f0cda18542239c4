import json
import statistics

import torch
from torch import nn

from folds import fold_arrays
from nets import fresh_net

with open("cv.json") as fh:
    CFG = json.load(fh)


def hit_rate(net, x, y):
    net.eval()
    with torch.no_grad():
        return ((net(x) > 0).float() == y).float().mean().item()


def fit(net, x, y):
    opt = torch.optim.Adam(net.parameters(), lr=CFG["lr"])
    for _ in range(CFG["epochs"]):
        net.train()
        for idx in torch.randperm(len(x)).split(CFG["batch"]):
            opt.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(net(x[idx]), y[idx]).backward()
            opt.step()
    return net


def main():
    torch.manual_seed(CFG["seed"])
    seen, held = [], []
    for number, arrays in fold_arrays(CFG["folds"], CFG["seed"]):
        xa, ya, xb, yb = map(torch.from_numpy, arrays)
        net = fit(fresh_net(xa.shape[1], CFG["width"], CFG["dropout"]), xa, ya)
        seen.append(hit_rate(net, xa, ya))
        held.append(hit_rate(net, xb, yb))
        print(f"fold {number}: fitted part {seen[-1]:.3f}, held-out part {held[-1]:.3f}")
    print(f"generalisation gap {statistics.mean(seen) - statistics.mean(held):.3f}")
    print(f"cross-validated accuracy {statistics.mean(held):.3f} +- {statistics.stdev(held):.3f}")


if __name__ == "__main__":
    main()
