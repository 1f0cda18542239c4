"""Gradient descent by hand on the parameters of a module."""

import torch
from torch import nn

torch.manual_seed(27)
x = torch.randn(800, 10)
y = torch.tanh(x @ torch.randn(10, 1))
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
for step in range(300):
    index = torch.randint(0, 800, (50,))
    loss = nn.functional.mse_loss(model(x[index]), y[index])
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
    if step % 25 == 0:
        print(f"step {step} loss {loss.item()!r}")
