import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset

from model import RBFNet


def peaks(xy):
    a = torch.exp(-12 * ((xy - torch.tensor([0.5, 0.4])) ** 2).sum(-1))
    b = torch.exp(-20 * ((xy + torch.tensor([0.4, 0.6])) ** 2).sum(-1))
    return (1.5 * a - b + 0.3 * torch.sin(3 * xy[:, 0])).unsqueeze(-1)


def mse(net, loader):
    se = n = 0
    with torch.no_grad():
        for x, y in loader:
            se += (net(x) - y).pow(2).sum().item()
            n += y.numel()
    return se / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bumps", type=int, default=9)
    ap.add_argument("--epochs", type=int, default=30)
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--seed", type=int, default=0)
    a = ap.parse_args()
    torch.manual_seed(a.seed)

    x = torch.rand(1500, 2) * 2 - 1
    y = peaks(x) + 0.02 * torch.randn(1500, 1)
    xt = torch.rand(500, 2) * 2 - 1
    train = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
    test = DataLoader(TensorDataset(xt, peaks(xt)), batch_size=500)

    net = RBFNet(2, a.bumps)
    opt = torch.optim.Adam(net.parameters(), lr=a.lr)
    print(f"start      test mse {mse(net, test):.5f}")
    for epoch in range(1, a.epochs + 1):
        for xb, yb in train:
            loss = torch.nn.functional.mse_loss(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 10 == 0:
            spread = net.centres.detach().norm(dim=1).mean().item()
            print(f"epoch {epoch:3d}  test mse {mse(net, test):.5f}  mean centre radius {spread:.2f}")


if __name__ == "__main__":
    main()
