#!/usr/bin/env python
# coding: utf-8

# # Arrhythmia detection with a small 1D-CNN
# Beats are windows of 96 samples. Class 1 (ectopic) is rare, so we balance the set first.

# In[1]:


import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
random.seed(SEED); np.random.seed(SEED); torch.manual_seed(SEED)


# In[2]:


def make_beats(n, T=96):
    t = np.linspace(0, 1, T)
    X, y = [], []
    for _ in range(n):
        ectopic = np.random.rand() < 0.07
        width = 0.02 + 0.015 * np.random.rand() + (0.012 if ectopic else 0.0)
        centre = 0.5 + 0.05 * np.random.randn()
        beat = np.exp(-((t - centre) ** 2) / (2 * width ** 2))
        beat += 0.25 * np.exp(-((t - centre - 0.25) ** 2) / 0.004)
        beat += 0.25 * np.random.randn(T)
        X.append(beat); y.append(int(ectopic))
    return np.array(X, dtype=np.float32), np.array(y)

X, y = make_beats(1500)
print(X.shape, "ectopic:", y.mean())


# The classes are very unbalanced -> repeat the rare beats until both classes have the same size.

# In[3]:


rare = np.where(y == 1)[0]
common = np.where(y == 0)[0]
rare_up = np.random.choice(rare, size=len(common), replace=True)
idx = np.concatenate([common, rare_up])
np.random.shuffle(idx)
X, y = X[idx], y[idx]
print(X.shape, "ectopic:", y.mean())


# In[4]:


n_train = int(0.8 * len(X))
X_train, y_train = X[:n_train], y[:n_train]
X_val, y_val = X[n_train:], y[n_train:]

mu, sd = X_train.mean(), X_train.std()
X_train = torch.tensor((X_train - mu) / sd)[:, None]
X_val = torch.tensor((X_val - mu) / sd)[:, None]
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)


# In[5]:


class BeatCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(1, 16, 7, padding=3)
        self.c2 = nn.Conv1d(16, 32, 5, padding=2)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(32 * 24, 2)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.c1(x)), 2)
        x = F.max_pool1d(F.relu(self.c2(x)), 2)
        return self.fc(self.drop(x.flatten(1)))

net = BeatCNN()
optim = torch.optim.Adam(net.parameters(), lr=1e-3)


# In[6]:


def f1(pred, target):
    tp = ((pred == 1) & (target == 1)).sum().item()
    fp = ((pred == 1) & (target == 0)).sum().item()
    fn = ((pred == 0) & (target == 1)).sum().item()
    return 2 * tp / max(2 * tp + fp + fn, 1)

for epoch in range(6):
    net.train()
    perm = torch.randperm(len(X_train))
    losses = []
    for i in range(0, len(perm), 64):
        b = perm[i:i + 64]
        loss = F.cross_entropy(net(X_train[b]), y_train[b])
        optim.zero_grad()
        loss.backward()
        optim.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        pred = net(X_val).argmax(1)
    print("epoch %d  loss %.4f  val acc %.3f  val F1 %.3f" % (
        epoch, np.mean(losses), (pred == y_val).float().mean().item(), f1(pred, y_val)))
