"""Autoencoder on the sklearn digits."""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--code", type=int, default=12)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


class AutoEncoder(nn.Module):
    def __init__(self, code):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, code))
        self.dec = nn.Sequential(nn.Linear(code, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        return self.dec(self.enc(x))


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 8.0 - 1.0
    perm = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    x_train, x_val = x[perm[:1400]], x[perm[1400:]]

    model = AutoEncoder(args.code)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_fn = nn.MSELoss()
    for epoch in range(1, args.epochs + 1):
        model.train()
        order = torch.randperm(len(x_train))
        total = 0.0
        for i in range(0, len(order), args.batch_size):
            xb = x_train[order[i:i + args.batch_size]]
            loss = loss_fn(model(xb), xb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(xb)
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(x_val), x_val).item()
        print(f"epoch {epoch:3d}  train_mse {total / len(x_train):.4f}  val_mse {val:.4f}")


if __name__ == "__main__":
    main()
