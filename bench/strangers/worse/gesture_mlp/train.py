import numpy as np
import torch
from torch import nn

SEED = 0


def gestures(n_per_class=250, n_classes=6, steps=24):
    """Two-axis accelerometer traces, flattened."""
    rng = np.random.default_rng(5)
    t = np.linspace(0, 2 * np.pi, steps)
    xs, ys = [], []
    for c in range(n_classes):
        phase = rng.uniform(0, 2 * np.pi, (n_per_class, 1))
        speed = rng.uniform(0.9, 1.1, (n_per_class, 1))
        ax = np.sin((1 + c // 2) * speed * t + phase)
        ay = np.cos((1 + c // 2) * speed * t + phase) * (1 if c % 2 else -1)
        trace = np.concatenate([ax, ay], 1) + 0.4 * rng.normal(size=(n_per_class, 2 * steps))
        xs.append(trace)
        ys.append(np.full(n_per_class, c))
    x, y = np.concatenate(xs), np.concatenate(ys)
    p = rng.permutation(len(x))
    x = (x[p] - x.mean()) / x.std()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y[p])


class GestureNet(nn.Module):
    def __init__(self, d_in, d_hidden, d_out):
        super().__init__()
        self.l1 = nn.Linear(d_in, d_hidden)
        self.l2 = nn.Linear(d_hidden, d_hidden)
        self.l3 = nn.Linear(d_hidden, d_hidden)
        self.head = nn.Linear(d_hidden, d_out)
        self.reset()

    def reset(self):
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, std=0.3)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = torch.tanh(self.l1(x))
        x = torch.tanh(self.l2(x))
        x = torch.tanh(self.l3(x))
        return self.head(x)


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def train(epochs=30, batch_size=16, lr=1e-3):
    torch.manual_seed(SEED)
    x, y = gestures()
    n = int(0.8 * len(x))
    x_train, y_train, x_val, y_val = x[:n], y[:n], x[n:], y[n:]
    model = GestureNet(x.shape[1], 96, 6)
    optim = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        perm = torch.randperm(n)
        total = 0.0
        for i in range(0, n, batch_size):
            b = perm[i:i + batch_size]
            loss = nn.functional.cross_entropy(model(x_train[b]), y_train[b])
            optim.zero_grad()
            loss.backward()
            optim.step()
            total += loss.item() * len(b)
        with torch.no_grad():
            val_loss = nn.functional.cross_entropy(model(x_val), y_val).item()
        print(f"epoch {epoch + 1}: loss {total / n:.4f}, val loss {val_loss:.4f}, "
              f"val acc {accuracy(model, x_val, y_val):.4f}")


if __name__ == "__main__":
    train()
