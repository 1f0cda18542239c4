import torch
from torch import nn

from master import MasterWeights


def rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    y = x[:, 0].abs() - 0.5 * x[:, 1] * x[:, 2] + 0.3 * torch.sin(2 * x[:, 3])
    return x, y


class HalfMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        self.half()

    def forward(self, x):
        return self.layers(x.half()).float().squeeze(-1)


if __name__ == "__main__":
    torch.manual_seed(6)
    x, y = rows(2000, 0)
    xt, yt = rows(500, 1)
    net = HalfMLP()
    mw = MasterWeights(net, torch.optim.Adam, lr=2e-3)
    for epoch in range(6):
        net.train()
        tot = 0.0
        for b in torch.randperm(len(x)).split(50):
            loss = nn.functional.mse_loss(net(x[b]), y[b])
            mw.backward(loss)
            mw.step(max_norm=5.0)
            tot += loss.item() * len(b)
        net.eval()
        with torch.no_grad():
            test = nn.functional.mse_loss(net(xt), yt).item()
        print(f"epoch {epoch} train {tot / len(x):.4f} test {test:.4f} scale {mw.scale:.0f} skipped {mw.skipped}")
