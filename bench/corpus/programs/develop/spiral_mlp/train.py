"""Spiral classification with a small MLP."""

import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_spirals(n, classes, rng):
    xs, ys = [], []
    for c in range(classes):
        t = rng.uniform(0.15, 1.0, n)
        angle = 3.5 * t + 2 * np.pi * c / classes
        points = np.stack([t * np.cos(angle), t * np.sin(angle)], axis=1)
        xs.append(points + rng.normal(0, 0.03, points.shape))
        ys.append(np.full(n, c))
    order = rng.permutation(n * classes)
    return np.concatenate(xs)[order], np.concatenate(ys)[order]


class MLP(nn.Module):
    def __init__(self, hidden, classes):
        super().__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        h = F.relu(self.fc2(h))
        h = self.drop(h)
        return self.out(h)


def evaluate(model, loader):
    model.eval()
    correct, total, loss_sum = 0, 0, 0.0
    with torch.no_grad():
        for xb, yb in loader:
            logits = model(xb)
            loss_sum += F.cross_entropy(logits, yb, reduction="sum").item()
            correct += (logits.argmax(dim=1) == yb).sum().item()
            total += len(yb)
    return loss_sum / total, correct / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--hidden", type=int, default=64)
    args = parser.parse_args()

    seed = int(os.environ.get("SEED", "0"))
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    X, y = make_spirals(500, 4, rng)
    X = torch.tensor(X, dtype=torch.float32) / 0.45
    y = torch.tensor(y, dtype=torch.long)
    X_train, y_train = X[:1600], y[:1600]
    X_val, y_val = X[1600:], y[1600:]
    train_loader = DataLoader(
        TensorDataset(X_train, y_train), batch_size=args.batch_size, shuffle=True
    )
    val_loader = DataLoader(TensorDataset(X_val, y_val), batch_size=200)

    model = MLP(args.hidden, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    print(f"training on {len(X_train)} points, lr={args.lr}")
    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item()
        val_loss, val_acc = evaluate(model, val_loader)
        print(
            f"Epoch {epoch + 1:3d}/{args.epochs} | train loss {running / len(train_loader):.4f} "
            f"| val loss {val_loss:.4f} | val acc {val_acc:.4f}"
        )
        if val_acc > best:
            best = val_acc
            torch.save(model.state_dict(), "best.pt")
    print(f"done, best val acc {best:.4f}")


if __name__ == "__main__":
    main()
