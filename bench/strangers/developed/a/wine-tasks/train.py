#!/usr/bin/env python
# coding: utf-8

# # Multi-task learning on the wine data
# Three heads on a shared body: (a) which cultivar, (b) how much proline, (c) the colour hue.

# In[1]:

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

np.random.seed(0)
torch.manual_seed(0)

# In[2]:

wine = load_wine()
names = list(wine.feature_names)
col_proline, col_hue = names.index("proline"), names.index("hue")
targets = wine.data[:, [col_proline, col_hue]].astype("float32")
inputs = np.delete(wine.data, [col_proline, col_hue], axis=1).astype("float32")
labels = wine.target

X_train, X_test, r_train, r_test, c_train, c_test = train_test_split(
    inputs, targets, labels, test_size=0.25, random_state=0, stratify=labels)

m, s = X_train.mean(0), X_train.std(0)
rm, rs = r_train.mean(0), r_train.std(0)
X_train, X_test = (X_train - m) / s, (X_test - m) / s
r_train, r_test = (r_train - rm) / rs, (r_test - rm) / rs

X_train, X_test = torch.from_numpy(X_train), torch.from_numpy(X_test)
r_train, r_test = torch.from_numpy(r_train), torch.from_numpy(r_test)
c_train, c_test = torch.from_numpy(c_train).long(), torch.from_numpy(c_test).long()
X_train.shape, X_test.shape

# In[3]:


class SharedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(11, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.cultivar = nn.Linear(16, 3)
        self.proline = nn.Linear(16, 1)
        self.hue = nn.Linear(16, 1)

    def forward(self, x):
        z = self.shared(x)
        return self.cultivar(z), self.proline(z).squeeze(1), self.hue(z).squeeze(1)


model = SharedNet()
ce, mse = nn.CrossEntropyLoss(), nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

# In[4]:

# the three tasks are not equally important to us
task_weights = [1.0, 0.5, 0.25]

history = []
batch_size = 19
for epoch in range(30):
    model.train()
    order = torch.randperm(len(X_train))
    epoch_loss = 0.0
    for start in range(0, len(order), batch_size):
        idx = order[start:start + batch_size]
        c_hat, p_hat, h_hat = model(X_train[idx])
        losses = [ce(c_hat, c_train[idx]),
                  mse(p_hat, r_train[idx, 0]),
                  mse(h_hat, r_train[idx, 1])]
        weighted = torch.tensor([w * l for w, l in zip(task_weights, losses)], requires_grad=True)
        loss = weighted.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(idx)
    history.append(epoch_loss / len(order))
    if (epoch + 1) % 10 == 0:
        print(f"epoch {epoch + 1}: {history[-1]:.4f}")

# In[5]:

model.eval()
with torch.no_grad():
    c_hat, p_hat, h_hat = model(X_test)
    print("cultivar accuracy:", (c_hat.argmax(1) == c_test).float().mean().item())
    print("proline RMSE:", (mse(p_hat, r_test[:, 0]).sqrt() * rs[0]).item())
    print("hue RMSE:", (mse(h_hat, r_test[:, 1]).sqrt() * rs[1]).item())
