"""Second-order MAML on sinusoid regression with torch.func."""
import math
from functools import partial

import torch
from torch import nn
from torch.func import functional_call

inner_lr, inner_steps, tasks_per_batch, shots = 0.02, 2, 8, 10


def sample_tasks(n, gen):
    amp = 0.5 + 2 * torch.rand(n, 1, 1, generator=gen)
    phase = math.pi * torch.rand(n, 1, 1, generator=gen)
    x = 10 * torch.rand(n, 2 * shots, 1, generator=gen) - 5
    y = amp * torch.sin(x + phase)
    return x[:, :shots], y[:, :shots], x[:, shots:], y[:, shots:]


def objective(net, params, x, y):
    return (functional_call(net, params, (x,)) - y).pow(2).mean()


def adapt(net, params, x, y, steps, second_order):
    for _ in range(steps):
        grads = torch.autograd.grad(objective(net, params, x, y), tuple(params.values()), create_graph=second_order)
        params = {k: p - inner_lr * g for (k, p), g in zip(params.items(), grads)}
    return params


def evaluate(net, gen_seed=12345, n=40):
    gen = torch.Generator().manual_seed(gen_seed)
    base = {k: v.detach().requires_grad_() for k, v in net.named_parameters()}
    pre = post = 0.0
    for xs, ys, xq, yq in zip(*sample_tasks(n, gen)):
        fast = adapt(net, base, xs, ys, steps=5, second_order=False)
        with torch.no_grad():
            pre += objective(net, base, xq, yq).item() / n
            post += objective(net, fast, xq, yq).item() / n
    return pre, post


def main():
    torch.manual_seed(15)
    gen = torch.Generator().manual_seed(15)
    net = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
    meta = torch.optim.Adam(net.parameters(), lr=2e-3)
    fast_weights = partial(adapt, net, steps=inner_steps, second_order=True)

    for it in range(201):
        meta.zero_grad()
        running = 0.0
        for xs, ys, xq, yq in zip(*sample_tasks(tasks_per_batch, gen)):
            theta = dict(net.named_parameters())
            loss = objective(net, fast_weights(theta, xs, ys), xq, yq) / tasks_per_batch
            loss.backward()
            running += loss.item()
        meta.step()
        if it % 50 == 0:
            print("iter %3d  query %.3f | unseen tasks: before %.3f after %.3f" % (it, running, *evaluate(net)))


if __name__ == "__main__":
    main()
