"""Deep ensemble of ten regressors trained at once with torch.func (ported from JAX)."""
import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

MEMBERS = 10


def member():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))


def data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 1, generator=g) * 6 - 3
    x = x[(x[:, 0] < -1) | (x[:, 0] > 0.5)]
    y = torch.sin(2 * x) + (0.05 + 0.1 * x.abs()) * torch.randn(x.shape, generator=g)
    return x, y


def init_ensemble():
    nets = [member() for _ in range(MEMBERS)]
    params, buffers = stack_module_state(nets)
    skeleton = copy.deepcopy(nets[0]).to("meta")

    def apply(p, b, x):
        mean, raw = functional_call(skeleton, (p, b), (x,)).chunk(2, dim=-1)
        return mean, nn.functional.softplus(raw) + 1e-3

    return params, buffers, apply


def main():
    torch.manual_seed(0)
    x, y = data(600, 0)
    xt, yt = data(300, 1)
    params, buffers, apply = init_ensemble()
    forward = vmap(apply, in_dims=(0, 0, 0))
    forward_shared = vmap(apply, in_dims=(0, 0, None))
    optimizer = torch.optim.Adam(params.values(), lr=5e-3)

    def nll(mean, scale, target):
        return (0.5 * ((target - mean) / scale) ** 2 + scale.log()).mean(dim=(1, 2))

    for step in range(1, 301):
        pick = torch.randint(len(x), (MEMBERS, 64))      # own mini-batch for every member
        optimizer.zero_grad()
        per_member = nll(*forward(params, buffers, x[pick]), y[pick])
        per_member.sum().backward()
        optimizer.step()
        if step % 60 == 0:
            with torch.no_grad():
                mean, scale = forward_shared(params, buffers, xt)
                rmse = (mean.mean(0) - yt).square().mean().sqrt().item()
                gap = torch.linspace(-0.8, 0.3, 40)[:, None]
                doubt_in = mean.std(0).mean().item()
                doubt_gap = forward_shared(params, buffers, gap)[0].std(0).mean().item()
            print(f"step {step}: nll {per_member.mean().item():+.3f} rmse {rmse:.3f} "
                  f"disagreement data {doubt_in:.3f} gap {doubt_gap:.3f}")


if __name__ == "__main__":
    main()
