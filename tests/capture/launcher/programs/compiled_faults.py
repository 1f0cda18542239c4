"""Compiled models with a fault each; the first argument chooses."""

import sys

import torch
from torch import nn

torch.manual_seed(8)
fault = sys.argv[1]
x = torch.randn(2000, 30)
y = (x @ torch.randn(30, 4)).argmax(1)
layers = [nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 4)]
if fault == "softmax":
    layers.append(nn.Softmax(dim=1))
model = torch.compile(nn.Sequential(*layers), backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(400):
    index = torch.randint(0, 2000, (100,))
    loss = nn.functional.cross_entropy(model(x[index]), y[index])
    if fault != "no-zero-grad":
        optimizer.zero_grad()
    loss.backward()
    if fault != "no-step":
        optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.6f}")
