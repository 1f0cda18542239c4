"""Meta-learning of sine waves: the inner loop uses `torch.autograd.grad` and `functional_call`."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(24)
model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def task():
    amplitude, phase = 0.5 + 2 * torch.rand(1), 3.14 * torch.rand(1)

    def sample(count):
        x = 10 * torch.rand(count, 1) - 5
        return x, amplitude * torch.sin(x + phase)

    return sample


for step in range(120):
    outer = 0.0
    for _ in range(4):
        sample = task()
        x, y = sample(10)
        weights = dict(model.named_parameters())
        inner = nn.functional.mse_loss(functional_call(model, weights, (x,)), y)
        grads = torch.autograd.grad(inner, weights.values(), create_graph=True)
        weights = {n: w - 0.01 * g for (n, w), g in zip(weights.items(), grads, strict=True)}
        x, y = sample(10)
        outer = outer + nn.functional.mse_loss(functional_call(model, weights, (x,)), y)
    outer = outer / 4
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {outer.item()!r}")
