import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WINDOW = 48
HORIZON = 12


def make_series(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    day = np.sin(2 * np.pi * t / 24)
    week = 0.5 * np.sin(2 * np.pi * t / 168)
    return (day + week + 0.1 * rng.standard_normal(n)).astype(np.float32)


def windows(series):
    X, Y = [], []
    for i in range(len(series) - WINDOW - HORIZON):
        X.append(series[i:i + WINDOW])
        Y.append(series[i + WINDOW:i + WINDOW + HORIZON])
    return torch.tensor(np.stack(X)).unsqueeze(-1), torch.tensor(np.stack(Y))


def build_model(units=32):
    # same stack as model.add(LSTM), model.add(Dropout), model.add(LSTM), model.add(Dense)
    return nn.Sequential(
        nn.LSTM(1, units, batch_first=True),
        nn.Dropout(0.2),
        nn.LSTM(units, units, batch_first=True),
        nn.Flatten(),
        nn.Linear(WINDOW * units, HORIZON),
    )


class Model:
    """compile / fit / evaluate, so that the notebooks stay the same"""

    def __init__(self, net):
        self.net = net

    def compile(self, lr=1e-3):
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.loss = nn.MSELoss()

    def fit(self, X, Y, epochs=3, batch_size=64, validation_data=None):
        loader = DataLoader(TensorDataset(X, Y), batch_size=batch_size, shuffle=True)
        history = []
        for e in range(epochs):
            self.net.train()
            tot = 0.0
            for xb, yb in loader:
                self.opt.zero_grad()
                l = self.loss(self.net(xb), yb)
                l.backward()
                self.opt.step()
                tot += l.item() * len(xb)
            line = f"Epoch {e + 1}/{epochs} - loss: {tot / len(X):.4f}"
            if validation_data is not None:
                line += f" - val_loss: {self.evaluate(*validation_data):.4f}"
            print(line)
            history.append(tot / len(X))
        return history

    def evaluate(self, X, Y):
        self.net.eval()
        with torch.no_grad():
            return self.loss(self.net(X), Y).item()


if __name__ == "__main__":
    torch.manual_seed(0)
    series = make_series()
    split = int(len(series) * 0.8)
    mean, std = series[:split].mean(), series[:split].std()
    series = (series - mean) / std
    X_train, Y_train = windows(series[:split])
    X_test, Y_test = windows(series[split:])
    model = Model(build_model())
    model.compile(lr=2e-3)
    model.fit(X_train, Y_train, validation_data=(X_test, Y_test))
    print("test mse", model.evaluate(X_test, Y_test))
