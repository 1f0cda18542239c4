"""Regression on tabular data (Friedman's function), settings in config.yaml."""

import os
from pathlib import Path

import torch
import yaml
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Dataset

cfg = yaml.safe_load(Path(__file__).with_name("config.yaml").read_text())
seed = int(os.environ.get("SEED", "0"))
torch.manual_seed(seed)


class TableDataset(Dataset):
    def __init__(self, features, target):
        self.features = torch.as_tensor(features, dtype=torch.float32)
        self.target = torch.as_tensor(target, dtype=torch.float32)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        return self.features[i], self.target[i]


def build(sizes, n_in):
    layers = []
    for size in sizes:
        layers += [nn.Linear(n_in, size), nn.ReLU()]
        n_in = size
    layers.append(nn.Linear(n_in, 1))
    return nn.Sequential(*layers)


X, y = make_friedman1(n_samples=cfg["data"]["samples"], noise=0.5, random_state=seed)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=cfg["data"]["test_fraction"], random_state=seed
)
x_scaler = StandardScaler().fit(X_train)
y_mean, y_std = y_train.mean(), y_train.std()
train_ds = TableDataset(x_scaler.transform(X_train), (y_train - y_mean) / y_std)
test_ds = TableDataset(x_scaler.transform(X_test), (y_test - y_mean) / y_std)
train_loader = DataLoader(train_ds, batch_size=cfg["optim"]["batch_size"], shuffle=True)
test_loader = DataLoader(test_ds, batch_size=300)

model = build(cfg["model"]["hidden"], X.shape[1])
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(
    model.parameters(), lr=cfg["optim"]["lr"], momentum=cfg["optim"]["momentum"]
)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)


def r2_score(loader):
    model.eval()
    predictions, targets = [], []
    with torch.inference_mode():
        for features, target in loader:
            predictions.append(model(features).squeeze(-1))
            targets.append(target)
    predictions, targets = torch.cat(predictions), torch.cat(targets)
    residual = ((predictions - targets) ** 2).sum()
    return (1 - residual / ((targets - targets.mean()) ** 2).sum()).item()


for epoch in range(1, cfg["optim"]["epochs"] + 1):
    model.train()
    total = 0.0
    for features, target in train_loader:
        prediction = model(features).squeeze(-1)
        loss = loss_fn(prediction, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(target)
    scheduler.step()
    print(f"epoch {epoch:02d}  mse={total / len(train_ds):.4f}  r2={r2_score(test_loader):.4f}")
