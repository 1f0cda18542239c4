"""Yield prediction with Monte-Carlo dropout intervals."""
import numpy as np
import torch
from sklearn.datasets import make_friedman1
from torch import nn


class YieldNet(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(10, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Dropout(p),
            nn.Linear(96, 96), nn.ReLU(), nn.Dropout(p), nn.Linear(96, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def keep_sampling(model):
    """Everything in inference behaviour except the dropout layers."""
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()


@torch.no_grad()
def predict_interval(model, x, draws=60):
    keep_sampling(model)
    stack = torch.stack([model(x) for _ in range(draws)])
    return stack.mean(0), stack.std(0)


@torch.no_grad()
def point_rmse(model, x, y):
    model.eval()
    return (model(x) - y).pow(2).mean().sqrt().item()


def main():
    torch.manual_seed(0)
    x, y = make_friedman1(1500, noise=1.0, random_state=0)
    x, y = x.astype(np.float32), y.astype(np.float32)
    n = 1100
    ym, ys = y[:n].mean(), y[:n].std()
    xt, xv = torch.from_numpy(x[:n] - 0.5), torch.from_numpy(x[n:] - 0.5)
    yt, yv = torch.from_numpy((y[:n] - ym) / ys), torch.from_numpy((y[n:] - ym) / ys)

    model = YieldNet()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    for epoch in range(20):
        model.train()
        for idx in torch.randperm(n).split(50):
            opt.zero_grad()
            nn.functional.mse_loss(model(xt[idx]), yt[idx]).backward()
            opt.step()
        if epoch % 5 == 4:
            mean, std = predict_interval(model, xv)
            mc = (mean - yv).pow(2).mean().sqrt().item()
            covered = ((yv - mean).abs() < 2 * (std.pow(2) + 0.2 ** 2).sqrt()).float().mean().item()
            print(f"epoch {epoch + 1:2d}  rmse {point_rmse(model, xv, yv):.3f}  mc rmse {mc:.3f}  "
                  f"within two sigma {covered:.2f}")


if __name__ == "__main__":
    main()
