import argparse
import logging

import torch
from torch import nn

from objectives import OBJECTIVES
from series import hourly_load, windows

log = logging.getLogger("load_forecast")


def network(context, horizon, width):
    return nn.Sequential(
        nn.Linear(context, width), nn.SiLU(),
        nn.Linear(width, width), nn.SiLU(),
        nn.Linear(width, 2 * horizon),
    )


def mae(net, x, y):
    with torch.no_grad():
        loc = net(x)[:, : y.shape[1]]
    return (loc - y).abs().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--objective", choices=sorted(OBJECTIVES), default="gaussian")
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--width", type=int, default=64)
    a = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    torch.manual_seed(0)
    load = hourly_load()
    cut = 70 * 24
    x_tr, y_tr = windows(load[:cut])
    x_va, y_va = windows(load[cut:])
    net = network(x_tr.shape[1], y_tr.shape[1], a.width)
    objective = OBJECTIVES[a.objective]
    opt = torch.optim.Adam(net.parameters(), lr=a.lr)

    for epoch in range(a.epochs):
        total = 0.0
        for idx in torch.randperm(len(x_tr)).split(32):
            opt.zero_grad()
            value = objective(net(x_tr[idx]), y_tr[idx])
            value.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            total += value.item() * len(idx)
        log.info("epoch %d  %s %.4f  val MAE %.4f", epoch, a.objective, total / len(x_tr), mae(net, x_va, y_va))


if __name__ == "__main__":
    main()
