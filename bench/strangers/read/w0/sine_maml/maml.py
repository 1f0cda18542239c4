"""Second order MAML on sine waves, purely functional."""
import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
meta = {k: v.detach().clone() for k, v in net.named_parameters()}
INNER_LR, META_LR, TASKS, SHOTS = 0.05, 2e-3, 16, 10


def tasks(n, gen):
    amp = 0.5 + 2 * torch.rand(n, 1, 1, generator=gen)
    phase = torch.rand(n, 1, 1, generator=gen) * 3.1416
    x = torch.rand(n, 2 * SHOTS, 1, generator=gen) * 10 - 5
    y = amp * torch.sin(x + phase)
    return x[:, :SHOTS], y[:, :SHOTS], x[:, SHOTS:], y[:, SHOTS:]


def mse(p, x, y):
    return ((functional_call(net, p, (x,)) - y) ** 2).mean()


def adapt(p, x, y, steps):
    for _ in range(steps):
        g = grad(mse)(p, x, y)
        p = {k: p[k] - INNER_LR * g[k] for k in p}
    return p


def task_loss(p, xs, ys, xq, yq, steps=1):
    return mse(adapt(p, xs, ys, steps), xq, yq)


def meta_loss(p, batch):
    return vmap(task_loss, in_dims=(None, 0, 0, 0, 0))(p, *batch).mean()


velocity = {k: torch.zeros_like(v) for k, v in meta.items()}
square = {k: torch.zeros_like(v) for k, v in meta.items()}
gen = torch.Generator().manual_seed(1)
held_out = tasks(64, torch.Generator().manual_seed(2))

for it in range(1, 401):
    g, loss = grad_and_value(meta_loss)(meta, tasks(TASKS, gen))
    for k in meta:
        velocity[k] = 0.9 * velocity[k] + 0.1 * g[k]
        square[k] = 0.999 * square[k] + 0.001 * g[k] ** 2
        update = (velocity[k] / (1 - 0.9**it)) / ((square[k] / (1 - 0.999**it)).sqrt() + 1e-8)
        meta[k] = meta[k] - META_LR * update
    if it % 100 == 0:
        with torch.no_grad():
            before = vmap(mse, in_dims=(None, 0, 0))(meta, *held_out[2:]).mean().item()
            after = vmap(lambda *b: task_loss(meta, *b, steps=5))(*held_out).mean().item()
        print(f"{it}: meta loss {loss.item():.3f} held-out before {before:.3f} after 5 steps {after:.3f}")

torch.save(meta, "maml.pt")
