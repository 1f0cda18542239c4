# coding: utf-8
# # Outlet temperature surrogate with uncertainty

# In[1]:

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(0)
rng = np.random.default_rng(0)

# In[2]:

# NTU-effectiveness simulations: m_hot, m_cold, T_hot, T_cold, UA  ->  T_out
n = 1500
P = np.column_stack([
    rng.uniform(0.5, 3.0, n), rng.uniform(0.5, 3.0, n), rng.uniform(60, 120, n), rng.uniform(5, 30, n), rng.uniform(1, 8, n)
])
cmin, cmax = P[:, :2].min(1), P[:, :2].max(1)
ntu, cr = P[:, 4] / cmin, cmin / cmax
eff = (1 - np.exp(-ntu * (1 - 0.99 * cr))) / (1 - 0.99 * cr * np.exp(-ntu * (1 - 0.99 * cr)))
T_out = P[:, 2] - eff * cmin / P[:, 0] * (P[:, 2] - P[:, 3]) + rng.normal(0, 0.5, n)

# In[3]:


class Simulations(Dataset):
    def __init__(self, params, target, stats):
        (mp, sp), (mt, st) = stats
        self.params = torch.tensor((params - mp) / sp, dtype=torch.float32)
        self.target = torch.tensor((target - mt) / st, dtype=torch.float32)

    def __len__(self):
        return len(self.params)

    def __getitem__(self, i):
        return self.params[i], self.target[i:i + 1]


cut = 1200
stats = (P[:cut].mean(0), P[:cut].std(0)), (T_out[:cut].mean(), T_out[:cut].std())
train_loader = DataLoader(Simulations(P[:cut], T_out[:cut], stats), batch_size=60, shuffle=True)
test_loader = DataLoader(Simulations(P[cut:], T_out[cut:], stats), batch_size=100)

# In[4]:


class GaussianMLP(nn.Module):
    def __init__(self, d_in, d_hidden=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d_in, d_hidden), nn.Tanh(), nn.Linear(d_hidden, d_hidden), nn.Tanh(), nn.Linear(d_hidden, 2)
        )

    def forward(self, x):
        mean, log_var = self.layers(x).unbind(-1)
        return mean, log_var.clamp(-8, 4)


def nll(mean, log_var, t):
    return 0.5 * (log_var + (t - mean) ** 2 * torch.exp(-log_var)).mean()


# In[5]:

net = GaussianMLP(5)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(15):
    net.train()
    for x, t in train_loader:
        opt.zero_grad()
        loss = nll(*net(x), t)
        loss.backward()
        opt.step()
    net.eval()
    abs_err = 0.0
    with torch.no_grad():
        for x, t in test_loader:
            abs_err += (net(x)[0] - t.squeeze(1)).abs().sum().item()
    print(epoch, "nll", round(loss.item(), 4), "MAE [K]", round(abs_err / (n - cut) * stats[1][1], 3))
