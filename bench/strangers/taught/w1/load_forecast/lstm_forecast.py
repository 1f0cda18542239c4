"""Day-ahead electricity load with an LSTM (one week in, 24 h out)."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

np.random.seed(0)
torch.manual_seed(0)
IN_HOURS, OUT_HOURS = 72, 24


def make_series(days=120):
    h = np.arange(days * 24)
    load = 50 + 12 * np.sin(2 * np.pi * h / 24) + 6 * np.sin(2 * np.pi * h / 168) + np.random.randn(len(h)) * 1.5
    spikes = np.random.rand(len(h)) < 0.003
    load[spikes] += np.random.uniform(60, 120, spikes.sum())
    return load.astype(np.float32)


class Windows(Dataset):
    def __init__(self, series):
        self.s = torch.from_numpy(series)

    def __len__(self):
        return len(self.s) - IN_HOURS - OUT_HOURS + 1

    def __getitem__(self, i):
        x = self.s[i:i + IN_HOURS].unsqueeze(-1)
        y = self.s[i + IN_HOURS:i + IN_HOURS + OUT_HOURS]
        return x, y


class LoadLSTM(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, OUT_HOURS)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


def prepare(model, optimizer, max_norm=1.0):
    """everything that has to happen before a new gradient is taken"""
    model.train()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.zero_grad()


def train_epoch(model, loader, optimizer, loss_fn):
    total = 0.0
    for x, y in loader:
        prepare(model, optimizer)
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


def mae(model, loader):
    model.eval()
    err, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            err += (model(x) - y).abs().sum().item()
            n += y.numel()
    return err / n


def main():
    series = make_series()
    cut = int(len(series) * 0.8)
    mu, sd = series[:cut].mean(), series[:cut].std()
    z = (series - mu) / sd
    train_loader = DataLoader(Windows(z[:cut]), batch_size=64, shuffle=True)
    test_loader = DataLoader(Windows(z[cut:]), batch_size=256)

    model = LoadLSTM()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    loss_fn = nn.MSELoss()
    for epoch in range(5):
        tr = train_epoch(model, train_loader, optimizer, loss_fn)
        print(f"epoch {epoch + 1}: mse {tr:.4f}  test MAE {mae(model, test_loader) * sd:.2f} MW")


if __name__ == "__main__":
    main()
