#!/usr/bin/env python
# coding: utf-8

# # Electricity load: 24 h ahead
#
# Exported from `load_forecast.ipynb`

# In[1]:

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(3)
torch.manual_seed(3)

# In[2]:

hours = np.arange(24 * 120)
temp = 12 + 10 * np.sin(2 * np.pi * hours / (24 * 60)) + 3 * np.random.randn(hours.size)
daily = np.clip(np.sin(2 * np.pi * (hours - 7) / 24), -0.2, None)
load = 40 + 15 * daily + 0.09 * (temp - 14) ** 2 + np.random.randn(hours.size)
series = np.stack([load, temp], axis=1).astype("float32")

split = 24 * 90
mu, sd = series[:split].mean(0), series[:split].std(0)
series = (series - mu) / sd

# In[3]:

LOOKBACK, HORIZON = 48, 24


def windows(block):
    xs, ys = [], []
    for s in range(0, len(block) - LOOKBACK - HORIZON, 3):
        xs.append(block[s:s + LOOKBACK].reshape(-1))
        ys.append(block[s + LOOKBACK:s + LOOKBACK + HORIZON, 0])
    return TensorDataset(torch.from_numpy(np.stack(xs)), torch.from_numpy(np.stack(ys)))


train_ds, test_ds = windows(series[:split]), windows(series[split:])
train_dl = DataLoader(train_ds, batch_size=64, shuffle=True)
test_dl = DataLoader(test_ds, batch_size=256)
len(train_ds), len(test_ds)

# In[4]:


class LoadNet(nn.Module):
    def __init__(self, d_in, d_out, hidden=(128, 128, 64), p=0.1):
        super().__init__()
        dims = [d_in, *hidden]
        self.lins = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:]))
        self.drops = nn.ModuleList(nn.Dropout(p) for _ in hidden)
        self.head = nn.Linear(dims[-1], d_out)

    def forward(self, x):
        for lin, drop in zip(self.lins, self.drops):
            x = drop(lin(x))
        return self.head(x)


net = LoadNet(LOOKBACK * 2, HORIZON)
print(sum(p.numel() for p in net.parameters()), "parameters")

# In[5]:

opt = torch.optim.Adam(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=15)
huber = nn.SmoothL1Loss()
curve = []

for ep in range(15):
    net.train()
    tot = 0.0
    for xb, yb in train_dl:
        opt.zero_grad()
        l = huber(net(xb), yb)
        l.backward()
        opt.step()
        tot += l.item() * len(xb)
    sched.step()
    curve.append(tot / len(train_ds))

print([round(c, 4) for c in curve])

# In[6]:

net.eval()
err = 0.0
with torch.no_grad():
    for xb, yb in test_dl:
        err += (net(xb) - yb).abs().mean(1).sum().item()
print("test MAE [MW]:", err / len(test_ds) * sd[0])
