import copy
import io
import math

import torch
from torch import nn


class LoRA(nn.Module):
    def __init__(self, lin, r, alpha):
        super().__init__()
        self.lin = lin
        self.down = nn.Parameter(torch.empty(r, lin.in_features))
        self.up = nn.Parameter(torch.zeros(lin.out_features, r))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.s = alpha / r

    def forward(self, x):
        return self.lin(x) + self.s * (x @ self.down.t()) @ self.up.t()

    @torch.no_grad()
    def merged(self):
        out = copy.deepcopy(self.lin)
        out.weight += self.s * self.up @ self.down
        return out


def regressor():
    return nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))


def replace(net, make):
    for i, m in enumerate(net):
        new = make(m)
        if new is not None:
            net[i] = new
    return net


def fit(net, f, steps, lr):
    params = [p for p in net.parameters() if p.requires_grad]
    opt = torch.optim.Adam(params, lr=lr)
    first = None
    for step in range(steps):
        x = torch.rand(128, 1) * 6 - 3
        loss = (net(x) - f(x)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        first = first or loss.item()
    print(f"  {sum(p.numel() for p in params)} weights, loss {first:.4f} -> {loss.item():.5f}")


@torch.no_grad()
def mse(net, f):
    x = torch.linspace(-3, 3, 200)[:, None]
    return (net(x) - f(x)).pow(2).mean().item()


def shifted(x):
    return torch.sin(2 * x + 0.7)


def main():
    torch.manual_seed(0)
    base = regressor()
    print("base")
    fit(base, lambda x: torch.sin(2 * x), 800, 3e-3)
    base.requires_grad_(False)

    tuned = replace(copy.deepcopy(base), lambda m: LoRA(m, 4, 8) if isinstance(m, nn.Linear) else None)
    print("adapters")
    fit(tuned, shifted, 800, 5e-3)

    small = {n: p.detach().clone() for n, p in tuned.named_parameters() if p.requires_grad}
    buf = io.BytesIO()
    torch.save(small, buf)
    buf.seek(0)
    fresh = replace(copy.deepcopy(base), lambda m: LoRA(m, 4, 8) if isinstance(m, nn.Linear) else None)
    missing, unexpected = fresh.load_state_dict(torch.load(buf), strict=False)
    assert not unexpected and not any("down" in k or "up" in k for k in missing)

    merged = replace(copy.deepcopy(fresh), lambda m: m.merged() if isinstance(m, LoRA) else None)
    for name, net in [("base", base), ("tuned", tuned), ("reloaded", fresh), ("merged", merged)]:
        print(f"{name:9s} mse on the shifted sine {mse(net, shifted):.5f}")


if __name__ == "__main__":
    main()
