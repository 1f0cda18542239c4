from contextlib import contextmanager

import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@contextmanager
def only_dropout_active(model):
    """Evaluation mode everywhere except in the dropout layers; the former modes come back afterwards."""
    before = {m: m.training for m in model.modules()}
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    try:
        yield
    finally:
        for m, mode in before.items():
            m.training = mode


class StrengthModel(nn.Module):
    def __init__(self, d_in, width=96, p=0.1):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(d_in, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p),
                                   nn.Linear(width, width), nn.ReLU(), nn.Dropout(p))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.block(x)).squeeze(-1)

    @torch.no_grad()
    def with_uncertainty(self, x, draws=40):
        with only_dropout_active(self):
            samples = torch.stack([self(x) for _ in range(draws)])
        return samples.mean(0), samples.std(0)


def main():
    torch.manual_seed(26)
    X, y = make_friedman1(n_samples=1200, n_features=8, noise=1.0, random_state=26)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    cut = 900
    m, s = y[:cut].mean(), y[:cut].std()
    train = DataLoader(TensorDataset(X[:cut], (y[:cut] - m) / s), batch_size=45, shuffle=True)
    xv, yv = X[cut:], y[cut:]
    model = StrengthModel(8)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(12):
        for xb, yb in train:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        mean, std = model.with_uncertainty(xv)
        assert model.training
        if epoch % 3 == 2:
            err = (mean * s + m - yv).abs()
            sure = std <= std.median()
            print(f"epoch {epoch} mae {err.mean().item():.3f} | surer half {err[sure].mean().item():.3f} "
                  f"other half {err[~sure].mean().item():.3f} | mean std {(std * s).mean().item():.3f}")


if __name__ == "__main__":
    main()
