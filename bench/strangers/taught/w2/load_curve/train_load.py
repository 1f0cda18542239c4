"""Next-day electricity load with an MLP on calendar + lag features."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

HOURS = 24 * 200


def make_series(seed=5):
    rng = np.random.default_rng(seed)
    t = np.arange(HOURS)
    load = 50 + 12 * np.sin(2 * np.pi * (t - 7) / 24) + 5 * np.sin(2 * np.pi * t / 168)
    load += rng.normal(0, 1.5, HOURS)
    return load.astype(np.float32)


class LoadDataset(Dataset):
    def __init__(self, load, mean, std, lags=48, ahead=24):
        self.load = (load - mean) / std
        self.lags, self.ahead = lags, ahead
        hour = np.arange(len(load)) % 24
        day = (np.arange(len(load)) // 24) % 7
        self.calendar = np.stack([
            np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24),
            np.sin(2 * np.pi * day / 7), np.cos(2 * np.pi * day / 7),
        ], axis=1)

    def __len__(self):
        return len(self.load) - self.lags - self.ahead

    def __getitem__(self, i):
        now = i + self.lags
        x = np.concatenate([self.load[i:now], self.calendar[now]])
        y = self.load[now:now + self.ahead]
        return torch.from_numpy(x), torch.from_numpy(y)

    @property
    def n_features(self):
        return self.lags + self.calendar.shape[1]


class MLP(nn.Module):
    def __init__(self, n_in, n_out, hidden=(96, 96)):
        super().__init__()
        sizes = (n_in, *hidden)
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(sizes[-1], n_out)

    def forward(self, x):
        for lin in self.hidden:
            x = torch.relu(lin(x))
        return self.out(x)


def mae(model, loader):
    model.eval()
    err, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            err += (model(x) - y).abs().sum().item()
            n += y.numel()
    return err / n


def main():
    torch.manual_seed(5)
    load = make_series()
    past = load[:int(0.8 * HOURS)]
    ds = LoadDataset(load, past.mean(), past.std())
    cut = int(0.8 * len(ds))
    train = DataLoader(Subset(ds, range(cut)), batch_size=64, shuffle=True)
    test = DataLoader(Subset(ds, range(cut + ds.lags + ds.ahead, len(ds))), batch_size=256)

    model = MLP(ds.n_features, ds.ahead)
    loss_fn = nn.HuberLoss()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        model.train()
        for x, y in train:
            loss = loss_fn(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}  test MAE {mae(model, test):.4f}")


if __name__ == "__main__":
    main()
