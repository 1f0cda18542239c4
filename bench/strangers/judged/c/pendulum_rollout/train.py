"""learned simulator: roll a residual MLP forward from x0 and match the whole trajectory"""
import math

import torch
from torch import nn

DT, STEPS = 0.1, 12


def true_step(s):
    th, om = s.unbind(-1)
    acc = -math.pi * torch.sin(th) - 0.15 * om
    om2 = om + DT * acc
    return torch.stack([th + DT * om2, om2], -1)


def trajectories(n, gen):
    s = torch.stack([(torch.rand(n, generator=gen) - .5) * 3, (torch.rand(n, generator=gen) - .5) * 2], -1)
    out = [s]
    for _ in range(STEPS):
        s = true_step(s)
        out.append(s)
    return torch.stack(out, 1)


class Dynamics(nn.Module):
    def __init__(self, d=2, h=48):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, d))

    def rollout(self, s0, steps):
        traj = s0.new_zeros(s0.size(0), steps + 1, s0.size(1))
        traj[:, 0] = s0
        for k in range(steps):
            traj[:, k + 1] = traj[:, k] + DT * self.f(traj[:, k])
        return traj


def lr_lambda(it, warm=20, total=300):
    return min(1.0, (it + 1) / warm) * 0.5 * (1 + math.cos(math.pi * it / total))


def main():
    gen = torch.Generator().manual_seed(7)
    torch.manual_seed(7)
    train, held = trajectories(512, gen), trajectories(128, gen)
    dyn = Dynamics()
    opt = torch.optim.Adam(dyn.parameters(), lr=3e-3)
    sch = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda)
    for it in range(300):
        idx = torch.randint(0, len(train), (64,), generator=gen)
        ref = train[idx]
        sim = dyn.rollout(ref[:, 0], STEPS)
        loss = (sim[:, 1:] - ref[:, 1:]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(dyn.parameters(), 1.0)
        opt.step()
        sch.step()
        if it % 50 == 0:
            with torch.no_grad():
                e = (dyn.rollout(held[:, 0], STEPS) - held).pow(2).mean().sqrt()
            print(f"{it:4d}  loss {loss.item():.5f}  held-out rmse {e.item():.4f}")


if __name__ == "__main__":
    main()
