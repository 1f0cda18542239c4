"""Predict whether a loan defaults from the application form."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

SEED = 0
COLUMNS = ["income", "amount", "age", "rate", "months_employed", "debt_ratio", "late_payments"]


def applications(n):
    rng = np.random.default_rng(21)
    income = rng.lognormal(10.6, 0.45, n)
    amount = rng.lognormal(9.3, 0.6, n)
    age = rng.uniform(20, 70, n)
    rate = rng.uniform(0.02, 0.14, n)
    months = rng.exponential(60, n)
    debt = rng.beta(2, 5, n)
    late = rng.poisson(1.0, n)
    z = (2.5 * (amount / income - 0.35) + 45 * (rate - 0.08) + 6 * (debt - 0.28)
         + 1.2 * (late - 1.0) - 0.8 * np.sin(age / 8))
    y = (3.0 * z + 0.3 * rng.normal(size=n) > 0).astype(np.float32)
    return np.stack([income / 1000, amount / 1000, age, rate, months, debt, late], 1).astype(np.float32), y


def main():
    torch.manual_seed(SEED)
    features, target = applications(4000)
    data = TensorDataset(torch.from_numpy(features), torch.from_numpy(target))
    train_set, valid_set = random_split(data, [3200, 800],
                                        generator=torch.Generator().manual_seed(3))
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=800)

    model = nn.Sequential(nn.Linear(len(COLUMNS), 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),
                          nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    bce = nn.BCEWithLogitsLoss()

    for epoch in range(1, 26):
        model.train()
        train_loss = 0.0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = bce(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
            train_loss += loss.item() / len(train_loader)
        model.eval()
        with torch.no_grad():
            for xb, yb in valid_loader:
                logits = model(xb).squeeze(1)
                valid_loss = bce(logits, yb).item()
                valid_acc = ((logits > 0) == (yb > 0.5)).float().mean().item()
        print(f"Epoch {epoch:2d}: train_loss {train_loss:.4f} valid_loss {valid_loss:.4f} valid_acc {valid_acc:.4f}")


if __name__ == "__main__":
    main()
