import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LOOKBACK = 48
COLS = ["rentals", "temp", "sin_h", "cos_h"]


def load_frame(hours=24 * 120, seed=0):
    rng = np.random.default_rng(seed)
    idx = pd.date_range("2023-03-01", periods=hours, freq="h")
    h = idx.hour.to_numpy()
    temp = 12 + 8 * np.sin(2 * np.pi * (h - 9) / 24) + rng.normal(0, 1.5, hours)
    demand = 80 + 50 * np.exp(-((h - 8) ** 2) / 4) + 70 * np.exp(-((h - 18) ** 2) / 6) + 2 * temp
    demand *= np.where(idx.dayofweek >= 5, 0.6, 1.0)
    df = pd.DataFrame({"rentals": demand + rng.normal(0, 6, hours), "temp": temp}, index=idx)
    df["sin_h"] = np.sin(2 * np.pi * h / 24)
    df["cos_h"] = np.cos(2 * np.pi * h / 24)
    return df


class Windows(Dataset):
    def __init__(self, df, mean, std):
        z = ((df[COLS] - mean) / std).to_numpy(np.float32)
        self.z = torch.from_numpy(z)
        self.peak = torch.tensor(np.isin(df.index.hour, [7, 8, 9, 17, 18, 19]), dtype=torch.float32)

    def __len__(self):
        return len(self.z) - LOOKBACK

    def __getitem__(self, i):
        end = i + LOOKBACK
        weight = 1.0 + self.peak[end]
        return self.z[i:end], self.z[end, 0], weight


class DemandLSTM(nn.Module):
    def __init__(self, n_features, hidden=48):
        super().__init__()
        self.lstm = nn.LSTM(n_features, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        seq, _ = self.lstm(x)
        return self.out(self.norm(seq[:, -1]))


def peak_weighted_mse(pred, target, weight):
    err = (pred - target) ** 2
    return (err * weight).sum() / weight.expand_as(err).sum()


def run_epoch(model, loader, opt=None):
    model.train(opt is not None)
    total, n = 0.0, 0
    with torch.set_grad_enabled(opt is not None):
        for x, y, w in loader:
            loss = peak_weighted_mse(model(x), y, w)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
            total += loss.item() * len(x)
            n += len(x)
    return total / n


if __name__ == "__main__":
    torch.manual_seed(0)
    df = load_frame()
    cut = int(len(df) * 0.8)
    mean, std = df[COLS][:cut].mean(), df[COLS][:cut].std()
    train_dl = DataLoader(Windows(df[:cut], mean, std), batch_size=64, shuffle=True, drop_last=True)
    test_dl = DataLoader(Windows(df[cut - LOOKBACK:], mean, std), batch_size=256)

    model = DemandLSTM(len(COLS))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        tr = run_epoch(model, train_dl, opt)
        te = run_epoch(model, test_dl)
        print(f"epoch {epoch + 1}  train {tr:.4f}  test {te:.4f}")
