"""Second-order MAML on sinusoid regression with torch.func."""
from typing import NamedTuple

import torch
from torch import nn
from torch.func import functional_call, grad, vmap


class Tasks(NamedTuple):
    xs: torch.Tensor
    ys: torch.Tensor
    xq: torch.Tensor
    yq: torch.Tensor


def draw(n, shots, gen):
    amp = 0.1 + 4.9 * torch.rand(n, 1, 1, generator=gen)
    ph = 3.14 * torch.rand(n, 1, 1, generator=gen)
    x = 10 * torch.rand(n, 2 * shots, 1, generator=gen) - 5
    y = amp * torch.sin(x + ph)
    return Tasks(x[:, :shots], y[:, :shots], x[:, shots:], y[:, shots:])


net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


def mse(params, x, y):
    return (functional_call(net, params, (x,)) - y).square().mean()


def adapt(params, x, y, steps, lr):
    for _ in range(steps):
        g = grad(mse)(params, x, y)
        params = {k: p - lr * g[k] for k, p in params.items()}
    return params


def query_loss(params, xs, ys, xq, yq, steps, lr):
    return mse(adapt(params, xs, ys, steps, lr), xq, yq)


def meta_loss(params, tasks, steps=1, lr=0.01):
    per_task = vmap(lambda *t: query_loss(params, *t, steps, lr))(*tasks)
    return per_task.mean()


def main(iterations=400, meta_batch=16, shots=10):
    torch.manual_seed(0)
    for m in net:
        if isinstance(m, nn.Linear):
            m.reset_parameters()
    train_gen, test_gen = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    test_tasks = draw(100, shots, test_gen)
    params = {k: p.detach().clone().requires_grad_() for k, p in net.named_parameters()}
    meta_opt = torch.optim.Adam(params.values(), lr=2e-3)
    for it in range(1, iterations + 1):
        loss = meta_loss(params, draw(meta_batch, shots, train_gen))
        meta_opt.zero_grad()
        loss.backward()
        meta_opt.step()
        if it % 100 == 0:
            # adaptation itself needs gradients (torch.func makes its own), the meta parameters do not
            frozen = {k: p.detach() for k, p in params.items()}
            before = meta_loss(frozen, test_tasks, steps=0).item()
            after = meta_loss(frozen, test_tasks, steps=5).item()
            print(f"iteration {it}: meta loss {loss.item():.3f}  test before/after 5 steps {before:.3f}/{after:.3f}")


if __name__ == "__main__":
    main()
