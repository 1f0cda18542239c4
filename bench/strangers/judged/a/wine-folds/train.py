#!/usr/bin/env python
# coding: utf-8

# # Wine quality: 5-fold cross-validation
# First I got a single split running, this notebook repeats it over folds.

# In[1]:

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2024)
np.random.seed(2024)

# In[2]:

X, y = load_wine(return_X_y=True)
X.shape, np.bincount(y)

# In[3]:

HIDDEN = 32
EPOCHS = 20
LR = 5e-3


def build_net():
    return nn.Sequential(
        nn.Linear(X.shape[1], HIDDEN),
        nn.BatchNorm1d(HIDDEN),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(HIDDEN, 3),
    )


# In[4]:

net = build_net()
loss_fn = nn.CrossEntropyLoss()
optim = torch.optim.AdamW(net.parameters(), lr=LR, weight_decay=1e-3)
sum(p.numel() for p in net.parameters())

# In[5]:

skf = StratifiedKFold(n_splits=5, shuffle=True, random_state=2024)
fold_acc = []

for fold, (tr, te) in enumerate(skf.split(X, y)):
    scaler = StandardScaler().fit(X[tr])            # statistics of the training part only
    xtr = torch.tensor(scaler.transform(X[tr]), dtype=torch.float32)
    xte = torch.tensor(scaler.transform(X[te]), dtype=torch.float32)
    ytr, yte = torch.tensor(y[tr]), torch.tensor(y[te])
    loader = DataLoader(TensorDataset(xtr, ytr), batch_size=16, shuffle=True, drop_last=True)

    net = build_net()                               # fresh weights for every fold
    for epoch in range(EPOCHS):
        net.train()
        running = 0.0
        for xb, yb in loader:
            optim.zero_grad()
            loss = loss_fn(net(xb), yb)
            loss.backward()
            optim.step()
            running += loss.item()

    net.eval()
    with torch.no_grad():
        acc = (net(xte).argmax(1) == yte).float().mean().item()
    fold_acc.append(acc)
    print(f"fold {fold}: last train loss {running / len(loader):.3f}  accuracy {acc:.3f}")

# In[6]:

print(f"mean accuracy {np.mean(fold_acc):.3f} +- {np.std(fold_acc):.3f}")
