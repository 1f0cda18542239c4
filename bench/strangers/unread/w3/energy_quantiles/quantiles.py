# coding: utf-8

# In[1]:

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

QUANTILES = torch.tensor([0.1, 0.5, 0.9])
torch.manual_seed(15)
rng = np.random.default_rng(15)

# In[2]:

hours = np.arange(24 * 150)
temp = 12 + 9 * np.sin(2 * np.pi * hours / 24 - 2) + rng.normal(0, 2, len(hours))
noise = (1 + 0.8 * np.sin(2 * np.pi * hours / 24) ** 2) * rng.normal(0, 1, len(hours))
load = 40 + 0.04 * (temp - 16) ** 2 + 6 * np.sin(2 * np.pi * hours / 24) + 1.5 * noise
X = np.stack([np.sin(2 * np.pi * hours / 24), np.cos(2 * np.pi * hours / 24), temp], 1)
cut = 24 * 120
mx, sx, my, sy = X[:cut].mean(0), X[:cut].std(0), load[:cut].mean(), load[:cut].std()
X = torch.tensor((X - mx) / sx, dtype=torch.float32)
Y = torch.tensor((load - my) / sy, dtype=torch.float32).unsqueeze(1)
print(X.shape, Y.shape)

# In[3]:

net = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, len(QUANTILES)))


def pinball(pred, y):
    # pred (N, Q), y (N, 1)
    diff = y - pred
    return torch.maximum(QUANTILES * diff, (QUANTILES - 1) * diff).mean()


# In[4]:

loader = DataLoader(TensorDataset(X[:cut], Y[:cut]), batch_size=96, shuffle=True)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.85)
for epoch in range(12):
    net.train()
    for xb, yb in loader:
        opt.zero_grad()
        pinball(net(xb), yb).backward()
        opt.step()
    sched.step()
    if epoch % 3 == 2:
        net.eval()
        with torch.no_grad():
            out = net(X[cut:])
            cover = (Y[cut:] <= out).float().mean(0)
        print(epoch + 1, "pinball", round(pinball(out, Y[cut:]).item(), 4), "coverage", [round(c, 3) for c in cover.tolist()])

# In[5]:

with torch.no_grad():
    width = (net(X[cut:])[:, 2] - net(X[cut:])[:, 0]).view(-1, 24).mean(0) * sy
print("band width per hour:", np.round(width.numpy(), 1))
