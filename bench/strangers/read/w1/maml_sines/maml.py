"""MAML on sine waves in functional torch."""
import math

import torch
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(1, 40), torch.nn.Tanh(), torch.nn.Linear(40, 40), torch.nn.Tanh(),
                          torch.nn.Linear(40, 1))
params = {k: v.detach().clone() for k, v in net.named_parameters()}
INNER_LR, SHOTS = 0.05, 10


def tasks(n, g):
    amp = 0.5 + 1.5 * torch.rand(n, 1, 1, generator=g)
    phase = math.pi * torch.rand(n, 1, 1, generator=g)
    x = 10 * torch.rand(n, 2 * SHOTS, 1, generator=g) - 5
    return x / 5, amp * torch.sin(x + phase)


def mse(p, x, y):
    return (functional_call(net, p, (x,)) - y).square().mean()


def adapt(p, x, y, steps=1):
    for _ in range(steps):
        g = grad(mse)(p, x, y)
        p = {k: p[k] - INNER_LR * g[k] for k in p}
    return p


def task_loss(p, x, y):
    fast = adapt(p, x[:SHOTS], y[:SHOTS])
    return mse(fast, x[SHOTS:], y[SHOTS:])


def meta_loss(p, x, y):
    return vmap(task_loss, in_dims=(None, 0, 0))(p, x, y).mean()


def adam_init(p):
    zeros = {k: torch.zeros_like(v) for k, v in p.items()}
    return {"m": zeros, "v": {k: z.clone() for k, z in zeros.items()}, "t": 0}


def adam_update(p, g, s, lr=2e-3, b1=0.9, b2=0.999, eps=1e-8):
    t = s["t"] + 1
    m = {k: b1 * s["m"][k] + (1 - b1) * g[k] for k in p}
    v = {k: b2 * s["v"][k] + (1 - b2) * g[k] ** 2 for k in p}
    new = {k: p[k] - lr * (m[k] / (1 - b1 ** t)) / ((v[k] / (1 - b2 ** t)).sqrt() + eps) for k in p}
    return new, {"m": m, "v": v, "t": t}


g_train, g_test = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
x_test, y_test = tasks(100, g_test)
state = adam_init(params)
for step in range(501):
    x, y = tasks(25, g_train)
    params, state = adam_update(params, grad(meta_loss)(params, x, y), state)
    if step % 100 == 0:
        before = vmap(mse, in_dims=(None, 0, 0))(params, x_test[:, SHOTS:], y_test[:, SHOTS:]).mean()
        after = meta_loss(params, x_test, y_test)
        print(f"{step:4d} before {before.item():.3f} after adaptation {after.item():.3f}")

net.load_state_dict(params)
torch.save(net.state_dict(), "/tmp/maml_w1.pt")
