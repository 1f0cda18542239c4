"""MAML on sinusoids (Finn et al. 2017), second order, using torch.func."""
import argparse

import torch
from torch import nn
from torch.func import functional_call, grad, vmap


def sample_tasks(n, k, gen):
    amp = torch.rand(n, 1, generator=gen) * 4.9 + 0.1
    phase = torch.rand(n, 1, generator=gen) * torch.pi
    x = torch.rand(n, 2 * k, generator=gen) * 10 - 5
    y = amp * torch.sin(x - phase)
    xs, xq = x[..., None].split(k, dim=1)
    ys, yq = y[..., None].split(k, dim=1)
    return xs, ys, xq, yq


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=300)
    ap.add_argument("--tasks", type=int, default=16)
    ap.add_argument("--shots", type=int, default=10)
    ap.add_argument("--inner-lr", type=float, default=0.01)
    ap.add_argument("--inner-steps", type=int, default=1)
    ap.add_argument("--meta-lr", type=float, default=2e-3)
    args = ap.parse_args()

    torch.manual_seed(1)
    gen, test_gen = torch.Generator().manual_seed(1), torch.Generator().manual_seed(10_001)
    net = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
    theta = dict(net.named_parameters())
    meta_opt = torch.optim.Adam(theta.values(), lr=args.meta_lr)

    def mse(params, x, y):
        return (functional_call(net, params, (x,)) - y).square().mean()

    def adapt(params, x, y, steps):
        for _ in range(steps):
            g = grad(mse)(params, x, y)
            params = {k: p - args.inner_lr * g[k] for k, p in params.items()}
        return params

    def task_loss(params, xs, ys, xq, yq, steps):
        return mse(adapt(params, xs, ys, steps), xq, yq)

    def meta_loss(params, batch, steps):
        f = lambda xs, ys, xq, yq: task_loss(params, xs, ys, xq, yq, steps)
        return vmap(f)(*batch).mean()

    for it in range(1, args.iters + 1):
        loss = meta_loss(theta, sample_tasks(args.tasks, args.shots, gen), args.inner_steps)
        # fill .grad by hand, the optimizer only sees the outer gradient
        for p, g in zip(theta.values(), torch.autograd.grad(loss, list(theta.values()))):
            p.grad = g
        meta_opt.step()
        if it % 100 == 0:
            frozen = {k: p.detach() for k, p in theta.items()}
            test = sample_tasks(200, args.shots, test_gen)
            before, after = (meta_loss(frozen, test, s).item() for s in (0, 5))
            print(f"iter {it}: meta-loss {loss.item():.3f} | new tasks: 0 steps {before:.3f}, 5 steps {after:.3f}")


if __name__ == "__main__":
    main()
