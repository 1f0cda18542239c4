import argparse
import random

import numpy as np
import torch
from torch.utils.data import DataLoader

from blocks import MultiScaleForecaster
from data import Windows, synth_load


def parse():
    p = argparse.ArgumentParser("day-ahead load forecast")
    p.add_argument("--context", type=int, default=96)
    p.add_argument("--horizon", type=int, default=24)
    p.add_argument("--width", type=int, default=24)
    p.add_argument("--dilations", type=int, nargs="+", default=[1, 4, 12, 24])
    p.add_argument("--kind", default="causal", choices=["causal", "pool"])
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


def mae(model, loader, device):
    model.eval()
    err, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            err += (model(x.to(device)) - y.to(device)).abs().sum().item()
            n += y.numel()
    return err / n


def main():
    a = parse()
    random.seed(a.seed)
    np.random.seed(a.seed)
    torch.manual_seed(a.seed)
    device = torch.device("cpu")

    series = synth_load(24 * 120, a.seed)
    cut = int(len(series) * 0.8)
    mean, std = series[:cut].mean(0), series[:cut].std(0)
    tr = Windows(series[:cut], a.context, a.horizon, mean, std, step=3)
    va = Windows(series[cut:], a.context, a.horizon, mean, std, step=6)
    tr_dl = DataLoader(tr, batch_size=64, shuffle=True)
    va_dl = DataLoader(va, batch_size=128)

    model = MultiScaleForecaster(4, a.width, a.dilations, a.horizon, a.kind).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, a.epochs)
    best = float("inf")
    for ep in range(a.epochs):
        model.train()
        for x, y in tr_dl:
            opt.zero_grad(set_to_none=True)
            loss = torch.nn.functional.huber_loss(model(x.to(device)), y.to(device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        sched.step()
        m = mae(model, va_dl, device)
        best = min(best, m)
        print(f"epoch {ep} val mae (std units) {m:.4f} best {best:.4f}")


if __name__ == "__main__":
    main()
