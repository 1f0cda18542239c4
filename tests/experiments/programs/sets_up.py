"""A program that sets up for hours, unless it is told to be quick."""

import os
import time

import torch
from torch import nn

torch.manual_seed(0)
time.sleep(0 if "QUICK" in os.environ else 3600)
model = nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
for step in range(60):
    x = torch.randn(32, 10)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
