#!/usr/bin/env python
# coding: utf-8

# # House prices - small MLP baseline

# In[1]:

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(33)
np.random.seed(33)

# In[2]:

n = 1500
area = np.random.gamma(6, 18, n)
rooms = np.clip(np.round(area / 28 + np.random.randn(n)), 1, 9)
age = np.random.uniform(0, 90, n)
dist = np.random.exponential(6, n)
price = 40 + 2.1 * area + 9 * rooms - 0.6 * age - 4 * np.sqrt(dist) * 3 + np.random.randn(n) * 12
X = np.stack([area, rooms, age, dist], 1).astype(np.float32)
y = np.log(np.clip(price, 20, None)).astype(np.float32)

# In[3]:

idx = np.random.permutation(n)
tr, va = idx[:1200], idx[1200:]
mu, sd = X[tr].mean(0), X[tr].std(0)
ymu, ysd = y[tr].mean(), y[tr].std()
make = lambda i: TensorDataset(torch.tensor((X[i] - mu) / sd), torch.tensor((y[i] - ymu) / ysd).unsqueeze(1))
train_dl = DataLoader(make(tr), batch_size=64, shuffle=True)
valid_dl = DataLoader(make(va), batch_size=300)

# In[4]:

model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.MSELoss()
best = {"rmsle": float("inf"), "weights": None}

# In[5]:

def check(model, dl):
    """RMSLE on dl; remembers the weights when they are the best so far."""
    model.eval()
    torch.set_grad_enabled(False)
    se = sum(((model(a) - b) * float(ysd)).pow(2).sum().item() for a, b in dl)
    rmsle = (se / len(dl.dataset)) ** 0.5
    if rmsle >= best["rmsle"]:
        return rmsle
    best["rmsle"] = rmsle
    best["weights"] = {k: v.clone() for k, v in model.state_dict().items()}
    torch.set_grad_enabled(True)
    return rmsle

# In[6]:

for epoch in range(25):
    model.train()
    for a, b in train_dl:
        opt.zero_grad()
        loss = loss_fn(model(a), b)
        loss.backward()
        opt.step()
    print(f"{epoch:3d} {loss.item():.4f} {check(model, valid_dl):.4f}")

# In[7]:

model.load_state_dict(best["weights"])
print("best RMSLE", round(best["rmsle"], 4))
