"""Digits with a small network, as most tutorials do it."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
images = (digits.data / 16.0).astype("float32")
x_train, x_val, y_train, y_val = train_test_split(
    images, digits.target, test_size=0.2, random_state=0
)
train_set = TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train))
val_set = TensorDataset(torch.from_numpy(x_val), torch.from_numpy(y_val))
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=256)

model = nn.Sequential(
    nn.Linear(64, 128),
    nn.BatchNorm1d(128),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(128, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(64, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(15):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    correct, val_loss = 0, 0.0
    with torch.no_grad():
        for x, y in val_loader:
            logits = model(x)
            val_loss += criterion(logits, y).item() * len(y)
            correct += (logits.argmax(1) == y).sum().item()
    print(
        f"epoch {epoch} train_loss {total / len(train_loader)!r} "
        f"val_loss {val_loss / len(val_set)!r} accuracy {correct / len(val_set):.4f}"
    )
