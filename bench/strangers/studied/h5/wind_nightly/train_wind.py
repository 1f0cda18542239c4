# Wind power forecast, 6 hours ahead.
# Runs every night for a few epochs on the shared box, continues from the last night.
import os
import numpy as np
import torch
import torch.nn as nn

CKPT = "wind_last.pth"
NIGHTS = 3
EPOCHS_PER_NIGHT = 4
LOOKBACK, HORIZON = 48, 6


def make_series(T=3000):
    rng = np.random.RandomState(5)
    t = np.arange(T)
    wind = 8 + 3 * np.sin(2 * np.pi * t / 24) + 2 * np.sin(2 * np.pi * t / 171)
    noise = np.zeros(T)
    for i in range(1, T):
        noise[i] = 0.9 * noise[i - 1] + 0.4 * rng.randn()
    power = np.clip((wind + noise) / 14, 0, 1) ** 3
    return power.astype("float32")


series = make_series()
mu, sd = series[:2400].mean(), series[:2400].std()
series = (series - mu) / sd


def windows(a, b):
    xs, ys = [], []
    for s in range(a, b - LOOKBACK - HORIZON, 2):
        xs.append(series[s:s + LOOKBACK])
        ys.append(series[s + LOOKBACK:s + LOOKBACK + HORIZON])
    return torch.tensor(np.array(xs)).unsqueeze(-1), torch.tensor(np.array(ys))


X_train, y_train = windows(0, 2400)
X_test, y_test = windows(2400, 3000)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.out = nn.Linear(32, HORIZON)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.out(h[:, -1])


def save(model, optimizer, epoch):
    torch.save({"model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "epoch": epoch}, CKPT)


def load(model, optimizer):
    saved = torch.load(CKPT)
    model.load_state_dict(saved["model"])
    optimizer.state_dict().update(saved["optimizer"])
    return saved["epoch"]


def night():
    torch.manual_seed(0)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.999))
    criterion = nn.SmoothL1Loss()
    start = 0
    if os.path.exists(CKPT):
        start = load(model, optimizer)
        print("continuing from epoch", start)
    for epoch in range(start, start + EPOCHS_PER_NIGHT):
        model.train()
        perm = np.random.RandomState(epoch).permutation(len(X_train))
        running = 0
        for k in range(0, len(perm), 64):
            idx = torch.from_numpy(perm[k:k + 64])
            optimizer.zero_grad()
            loss = criterion(model(X_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            mae = (model(X_test) - y_test).abs().mean().item() * sd
        print(f"epoch {epoch:3d} train {running / len(perm):.4f} test MAE {mae:.4f}")
        save(model, optimizer, epoch + 1)


if __name__ == "__main__":
    for n in range(NIGHTS):
        print("--- night", n + 1)
        night()
    os.remove(CKPT)
