import argparse

import torch
import torch.nn.functional as F

from snr_optimizer import SNRStep
from tasks import friedman, regressor


def r_squared(model, loader):
    model.eval()
    with torch.no_grad():
        x, y = next(iter(loader))
        return (1 - F.mse_loss(model(x), y) / y.var()).item()


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--width", type=int, default=64)
    cli.add_argument("--batch", type=int, default=32)
    cli.add_argument("--lr", type=float, default=0.02)
    cli.add_argument("--window", type=int, default=8)
    cli.add_argument("--epochs", type=int, default=8)
    opts = cli.parse_args()

    torch.manual_seed(0)
    train, valid = friedman(opts.batch)
    model = regressor(opts.width)
    optimizer = SNRStep(model.parameters(), lr=opts.lr, window=opts.window)
    for epoch in range(opts.epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        print(f"epoch {epoch}: R2 {r_squared(model, valid):.3f}  step scale {optimizer.scale:.2f}")


if __name__ == "__main__":
    main()
