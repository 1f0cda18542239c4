#!/usr/bin/env python
# coding: utf-8
# # Battery life with uncertainty (MC dropout)
# We want an error bar per prediction, so at test time dropout stays on and we average 50 stochastic passes.
# Batch norm must use its running statistics then, only the dropout layers are switched back.

# In[1]:
import numpy as np
import torch
import torch.nn as nn

np.random.seed(14)
torch.manual_seed(14)

# In[2]:
def cells(n):
    x = np.random.uniform(-1, 1, (n, 6)).astype("float32")
    spread = 0.05 + 0.3 * (x[:, 2] > 0)
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + spread * np.random.randn(n)
    return torch.tensor(x), torch.tensor(y.astype("float32"))

x_train, y_train = cells(1200)
x_val, y_val = cells(300)
x_test, y_test = cells(300)

# In[3]:
class BatteryNet(nn.Module):
    def __init__(self, width=64, p=0.1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p),
        )
        self.mean = nn.Linear(width, 1)
        self.log_var = nn.Linear(width, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h).squeeze(1), self.log_var(h).squeeze(1).clamp(-6, 3)

def nll(mean, log_var, y):
    return 0.5 * (log_var + (y - mean) ** 2 / log_var.exp()).mean()

def enable_mc_dropout(net):
    net.eval()
    for m in net.modules():
        if isinstance(m, nn.Dropout):
            m.train()

# In[4]:
net = BatteryNet()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
for epoch in range(12):
    net.train()
    for idx in torch.randperm(len(x_train)).split(64):
        if len(idx) < 2:
            continue  # batch norm cannot do a single row
        opt.zero_grad()
        nll(*net(x_train[idx]), y_train[idx]).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        v = nll(*net(x_val), y_val).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch}: val nll {v:.4f}")

# In[5]:
# Stochastic passes: dropout on, batch norm off.
enable_mc_dropout(net)
with torch.no_grad():
    draws = [net(x_test) for _ in range(50)]
means = torch.stack([m for m, _ in draws])
aleatoric = torch.stack([lv.exp() for _, lv in draws]).mean(0)
epistemic = means.var(0)
total_sd = (aleatoric + epistemic).sqrt()
center = means.mean(0)
inside = ((y_test - center).abs() < 1.96 * total_sd).float().mean()
print(f"test rmse {(center - y_test).square().mean().sqrt():.4f}, 95% interval covers {inside:.3f}")
print(f"mean epistemic sd {epistemic.sqrt().mean():.4f}, aleatoric sd {aleatoric.sqrt().mean():.4f}")
