import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 0


def make_data(n=3000):
    """Simulated pump test bench: six operating parameters -> efficiency."""
    rng = np.random.default_rng(42)
    x = rng.uniform(-1, 1, (n, 6))
    y = (np.sin(2.5 * x[:, 0]) * x[:, 1] + 0.8 * x[:, 2] ** 2 - 0.6 * x[:, 3]
         + 0.5 * np.cos(3 * x[:, 4]) + 0.05 * rng.normal(size=n))
    y = (y - y.mean()) / y.std()
    x, y = torch.tensor(x).float(), torch.tensor(y).float()[:, None]
    return (x[:2400], y[:2400]), (x[2400:], y[2400:])


class Trainer:
    def __init__(self, model, lr=0.1, batch_size=32):
        self.model = model
        self.batch_size = batch_size
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.history = []

    def train_epoch(self, x, y):
        self.model.train()
        losses = []
        for idx in torch.randperm(len(x)).split(self.batch_size):
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.model(x[idx]), y[idx])
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        return F.mse_loss(self.model(x), y).item()

    def fit(self, train, test, epochs):
        for epoch in range(epochs):
            tr = self.train_epoch(*train)
            te = self.evaluate(*test)
            self.history.append((tr, te))
            print(f"[{epoch + 1}/{epochs}] train loss: {tr:.4f} | test loss: {te:.4f}")


def main():
    torch.manual_seed(SEED)
    train, test = make_data()
    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                          nn.Linear(64, 1))
    Trainer(model).fit(train, test, epochs=40)


if __name__ == "__main__":
    main()
