import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from cloudnet import CloudNet


def sphere(n):
    v = torch.randn(n, 3)
    return v / v.norm(dim=1, keepdim=True)


def cube(n):
    v = torch.rand(n, 3) * 2 - 1
    axis = torch.randint(3, (n,))
    v[torch.arange(n), axis] = torch.where(torch.rand(n) < 0.5, -1.0, 1.0)
    return v * 0.75


def torus(n):
    a, b = torch.rand(2, n) * 2 * math.pi
    return torch.stack([(0.8 + 0.3 * b.cos()) * a.cos(), (0.8 + 0.3 * b.cos()) * a.sin(), 0.3 * b.sin()], 1)


def clouds(n, points=48):
    y = torch.arange(n) % 3
    x = torch.stack([(sphere, cube, torus)[int(k)](points) for k in y])
    rot, _ = torch.linalg.qr(torch.randn(n, 3, 3))
    return TensorDataset(x @ rot + 0.03 * torch.randn(n, points, 3), y)


def main():
    torch.manual_seed(14)
    train, test = DataLoader(clouds(240), 24, shuffle=True), DataLoader(clouds(90), 45)
    net = CloudNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    ce = nn.CrossEntropyLoss()
    for epoch in range(5):
        net.train()
        for x, y in train:
            opt.zero_grad()
            ce(net(x), y).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            hit = sum((net(x).argmax(1) == y).sum().item() for x, y in test)
        print(f"epoch {epoch} accuracy {hit / 90:.3f}")
    torch.save(net.state_dict(), "cloudnet.pt")


if __name__ == "__main__":
    main()
