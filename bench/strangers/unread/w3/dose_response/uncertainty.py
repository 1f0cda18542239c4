"""Dose-response regression; predictive spread from sampled dropout masks (Gal & Ghahramani 2016)."""
import torch
import torch.nn.functional as F
from torch import nn


class Regressor(nn.Module):
    def __init__(self, width=64, p=0.1):
        super().__init__()
        self.seq = nn.Sequential(
            nn.Linear(2, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.seq(x).squeeze(-1)


class sampling_dropout:
    """Inside the block dropout layers draw masks; every module gets its own mode back afterwards."""

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.modes = [(m, m.training) for m in self.model.modules()]
        self.model.eval()
        for m in self.model.modules():
            if isinstance(m, nn.Dropout):
                m.train()

    def __exit__(self, *exc):
        for m, mode in self.modes:
            m.training = mode


def patients(n, seed):
    g = torch.Generator().manual_seed(seed)
    dose, weight = torch.rand(n, generator=g) * 4, torch.randn(n, generator=g)
    response = 3 * dose**2 / (1 + dose**2) - 0.4 * weight + 0.15 * torch.randn(n, generator=g)
    return torch.stack([dose / 2 - 1, weight], 1), response


@torch.no_grad()
def point_error(model, x, y):
    model.eval()
    return (model(x) - y).abs().mean().item()


@torch.no_grad()
def predictive(model, x, draws=50):
    with sampling_dropout(model):
        samples = torch.stack([model(x) for _ in range(draws)])
    return samples.mean(0), samples.std(0)


def main():
    torch.manual_seed(3)
    (x, y), (xv, yv) = patients(800, 0), patients(200, 1)
    model = Regressor()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    for epoch in range(20):
        model.train()
        for i in torch.randperm(len(y)).split(40):
            opt.zero_grad()
            F.smooth_l1_loss(model(x[i]), y[i]).backward()
            opt.step()
        if epoch % 5 == 4:
            mean, std = predictive(model, xv)
            print(f"epoch {epoch + 1}: mae {point_error(model, xv, yv):.4f}, "
                  f"mc mae {(mean - yv).abs().mean().item():.4f}, mean spread {std.mean().item():.4f}")
    far = torch.tensor([[4.0, 0.0], [0.0, 0.0]])
    print("spread far / near:", [round(s, 4) for s in predictive(model, far)[1].tolist()])


if __name__ == "__main__":
    main()
