"""MAML (second order) on sinusoids, functional style."""
from typing import NamedTuple
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

Params = dict[str, torch.Tensor]


class Task(NamedTuple):
    xs: torch.Tensor
    ys: torch.Tensor
    xq: torch.Tensor
    yq: torch.Tensor


def draw(n_tasks: int, shots: int, gen: torch.Generator) -> Task:
    u = lambda lo, hi, *s: lo + (hi - lo) * torch.rand(*s, generator=gen)
    amp, phase = u(0.5, 3, n_tasks, 1, 1), u(0, 3.14, n_tasks, 1, 1)
    f = lambda x: amp * torch.sin(x - phase)
    xs, xq = u(-5, 5, n_tasks, shots, 1), u(-5, 5, n_tasks, shots, 1)
    return Task(xs, f(xs), xq, f(xq))


def make_learner(net: nn.Module, inner_lr: float, inner_steps: int):
    def loss(params: Params, x, y):
        return nn.functional.mse_loss(functional_call(net, params, (x,)), y)

    def adapt(params: Params, x, y, steps=inner_steps) -> Params:
        for _ in range(steps):
            g = grad(loss)(params, x, y)
            params = {k: p - inner_lr * g[k] for k, p in params.items()}
        return params

    def per_task(params: Params, xs, ys, xq, yq):
        return loss(adapt(params, xs, ys), xq, yq)

    return vmap(per_task, in_dims=(None, 0, 0, 0, 0))


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
    theta = {k: v.detach().clone().requires_grad_(True) for k, v in net.named_parameters()}
    meta_opt = torch.optim.Adam(theta.values(), lr=2e-3)
    learner = make_learner(net, inner_lr=0.02, inner_steps=3)
    g_train, g_test = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    held_out = draw(100, 10, g_test)

    for it in range(1, 301):
        meta_loss = learner(theta, *draw(16, 10, g_train)).mean()
        meta_opt.zero_grad()
        meta_loss.backward()
        torch.nn.utils.clip_grad_norm_(theta.values(), 10.0)
        meta_opt.step()
        if it % 100 == 0:
            # inner gradients come from torch.func.grad, which works under no_grad around it
            with torch.no_grad():
                test = learner(theta, *held_out).mean()
            print(f"{it}: meta-train {meta_loss.item():.3f}  new tasks after 3 steps {test.item():.3f}")


if __name__ == "__main__":
    main()
