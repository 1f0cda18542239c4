# Handwritten digits with a small fully connected network.
import os
import random

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

digits = load_digits()
X = (digits.data / 16.0).astype(np.float32)
y = digits.target.astype(np.int64)

X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.25, random_state=SEED, stratify=y
)
mean, std = X_train.mean(), X_train.std()
X_train = (X_train - mean) / std
X_test = (X_test - mean) / std

train_ds = TensorDataset(torch.from_numpy(X_train), torch.from_numpy(y_train))
test_ds = TensorDataset(torch.from_numpy(X_test), torch.from_numpy(y_test))
train_loader = DataLoader(train_ds, batch_size=64, shuffle=True)
test_loader = DataLoader(test_ds, batch_size=256)

net = nn.Sequential(
    nn.Linear(64, 128),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(128, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)

epochs = 20
for epoch in range(epochs):
    net.train()
    running_loss = 0.0
    for xb, yb in train_loader:
        opt.zero_grad()
        logits = net(xb)
        loss = F.cross_entropy(logits, yb)
        loss.backward()
        opt.step()
        running_loss += loss.item() * xb.size(0)

    net.eval()
    correct = 0
    test_loss = 0.0
    with torch.no_grad():
        for xb, yb in test_loader:
            logits = net(xb)
            test_loss += F.cross_entropy(logits, yb, reduction="sum").item()
            correct += (logits.argmax(dim=1) == yb).sum().item()

    print(
        f"Epoch {epoch + 1:2d}/{epochs} "
        f"train_loss={running_loss / len(train_ds):.4f} "
        f"test_loss={test_loss / len(test_ds):.4f} "
        f"test_acc={correct / len(test_ds):.4f}"
    )
