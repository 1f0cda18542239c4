"""A program whose data are gone when it is rerun: the path leads out of the project."""

import os

import torch
from torch import nn

torch.manual_seed(0)
data = torch.load(os.environ["TRAINING_DATA"], weights_only=True)
model = nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
for step in range(60):
    loss = (model(data) - data.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
