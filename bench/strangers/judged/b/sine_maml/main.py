"""Second-order MAML on sinusoids with torch.func; inner updates are plain tensor arithmetic."""
import math
import sys

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

K, INNER_LR, INNER_STEPS = 10, 0.01, 2
net = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))


def task_loss(params, x, y):
    return (functional_call(net, params, (x,)) - y).pow(2).mean()


def adapt(params, x, y, steps):
    for _ in range(steps):
        g = grad(task_loss)(params, x, y)
        params = {k: p - INNER_LR * g[k] for k, p in params.items()}
    return params


def query_loss(params, sx, sy, qx, qy, steps=INNER_STEPS):
    return task_loss(adapt(params, sx, sy, steps), qx, qy)


def tasks(n, gen):
    amp = 0.5 + 3 * torch.rand(n, 1, 1, generator=gen)
    phase = math.pi * torch.rand(n, 1, 1, generator=gen)
    x = 10 * torch.rand(n, 2 * K, 1, generator=gen) - 5
    y = amp * torch.sin(x + phase)
    return x[:, :K], y[:, :K], x[:, K:], y[:, K:]


def evaluate(params, batch, steps):
    frozen = {k: v.detach() for k, v in params.items()}
    per_task = vmap(lambda *t: query_loss(frozen, *t, steps=steps))(*batch)
    return per_task.mean().item()


def main(iterations):
    torch.manual_seed(0)
    for m in net:
        if isinstance(m, nn.Linear):
            nn.init.kaiming_normal_(m.weight)
            nn.init.zeros_(m.bias)
    train_gen, test_gen = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    held = tasks(100, test_gen)
    params = {k: p.detach().clone().requires_grad_() for k, p in net.named_parameters()}
    meta = torch.optim.Adam(params.values(), lr=2e-3)
    for it in range(1, iterations + 1):
        batch = tasks(16, train_gen)
        loss = vmap(query_loss, in_dims=(None, 0, 0, 0, 0))(params, *batch).mean()
        meta.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(list(params.values()), 10.0)
        meta.step()
        if it % (iterations // 4) == 0:
            line = "  ".join(f"{s} steps {evaluate(params, held, s):.3f}" for s in (0, 1, 5))
            print(f"iteration {it}: meta loss {loss.item():.3f} | held-out tasks after {line}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
