import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LOOKBACK = 72
HORIZON = 12


def load_series(path=None):
    if path:
        return np.loadtxt(path, delimiter=",", skiprows=1, usecols=1)
    rs = np.random.RandomState(42)
    t = np.arange(3000)
    return 8 + 3 * np.sin(2 * np.pi * t / 24) + 2 * np.sin(2 * np.pi * t / 170) + rs.randn(3000) * 0.5


class Windows(Dataset):
    def __init__(self, s):
        self.s = torch.tensor(s, dtype=torch.float32)

    def __len__(self):
        return len(self.s) - LOOKBACK - HORIZON + 1

    def __getitem__(self, i):
        return self.s[i:i + LOOKBACK], self.s[i + LOOKBACK:i + LOOKBACK + HORIZON]


class TCN(nn.Module):
    def __init__(self, ch=24):
        super().__init__()
        self.convs = nn.ModuleList([
            nn.Conv1d(1 if i == 0 else ch, ch, 3, dilation=2 ** i, padding=2 ** i) for i in range(4)
        ])
        self.head = nn.Linear(ch * LOOKBACK, HORIZON)

    def forward(self, x):
        h = x.unsqueeze(1)
        for i, c in enumerate(self.convs):
            y = torch.relu(c(h))
            h = y if i == 0 else h + y
        return self.head(h.flatten(1))


class Forecaster:
    """small keras-like wrapper"""

    def __init__(self, model, lr=1e-3):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.L1Loss()
        self.history = {"loss": [], "val_loss": []}

    def evaluate(self, loader):
        self.model.eval()
        torch.set_grad_enabled(False)
        tot = 0.0
        for x, y in loader:
            tot += self.loss_fn(self.model(x), y).item() * len(x)
        return tot / len(loader.dataset)

    def fit(self, train, val, epochs):
        for ep in range(epochs):
            self.model.train()
            run = 0.0
            for x, y in train:
                self.opt.zero_grad()
                loss = self.loss_fn(self.model(x), y)
                loss.backward()
                self.opt.step()
                run += loss.item() * len(x)
            self.history["loss"].append(run / len(train.dataset))
            self.history["val_loss"].append(self.evaluate(val))
            print(f"Epoch {ep + 1}/{epochs} - loss: {self.history['loss'][-1]:.4f} "
                  f"- val_loss: {self.history['val_loss'][-1]:.4f}")
        return self.history


if __name__ == "__main__":
    torch.manual_seed(0)
    s = load_series()
    cut = int(len(s) * 0.8)
    mu, sd = s[:cut].mean(), s[:cut].std()
    s = (s - mu) / sd
    train = DataLoader(Windows(s[:cut]), batch_size=64, shuffle=True)
    val = DataLoader(Windows(s[cut - LOOKBACK:]), batch_size=256)
    Forecaster(TCN()).fit(train, val, epochs=4)
