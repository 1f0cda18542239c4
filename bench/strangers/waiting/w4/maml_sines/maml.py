"""MAML on sinusoids (Finn 2017), written with torch.func."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

torch.manual_seed(0)
INNER_LR, TASKS, SHOTS = 0.02, 8, 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))

    def forward(self, x):
        return self.body(x)


def sample_task():
    amp, phase = 0.5 + 4 * torch.rand(1), math.pi * torch.rand(1)
    x = 10 * torch.rand(2 * SHOTS, 1) - 5
    y = amp * torch.sin(x + phase)
    return (x[:SHOTS], y[:SHOTS]), (x[SHOTS:], y[SHOTS:])


def adapt(net, support, steps=1, second_order=True):
    params = dict(net.named_parameters())
    x, y = support
    for _ in range(steps):
        loss = F.mse_loss(functional_call(net, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=second_order)
        params = {n: p - INNER_LR * g for (n, p), g in zip(params.items(), grads)}
    return params


def evaluate(net, n_tasks=50, steps=5):
    total = 0.0
    for _ in range(n_tasks):
        support, (xq, yq) = sample_task()
        fast = adapt(net, support, steps, second_order=False)
        with torch.no_grad():
            total += F.mse_loss(functional_call(net, fast, (xq,)), yq).item()
    return total / n_tasks


net = Net()
meta_opt = torch.optim.Adam(net.parameters(), lr=2e-3)
running = 0.0
print(f"start: test mse after adaptation {evaluate(net):.3f}")
for it in range(1, 601):
    meta_opt.zero_grad()
    for _ in range(TASKS):
        support, (xq, yq) = sample_task()
        fast = adapt(net, support)
        loss = F.mse_loss(functional_call(net, fast, (xq,)), yq) / TASKS
        loss.backward()
        running += loss.item()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    meta_opt.step()
    if it % 200 == 0:
        print(f"{it}: meta loss {running / 200:.3f} test mse after adaptation {evaluate(net):.3f}")
        running = 0.0
