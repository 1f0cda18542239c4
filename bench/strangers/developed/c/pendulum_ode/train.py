# learn the vector field of a damped pendulum from observed trajectories
import math
import torch
from torch import nn

torch.manual_seed(5)
DT, STEPS = 0.1, 30


def true_field(s):
    th, om = s.unbind(-1)
    return torch.stack([om, -math.pi * torch.sin(th) - 0.2 * om], -1)


class Field(nn.Module):
    def __init__(self, h=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, 2))

    def forward(self, s):
        return self.net(s)


def heun(f, s, dt):
    k1 = f(s)
    k2 = f(s + dt * k1)
    return s + 0.5 * dt * (k1 + k2)


def rollout(f, s0, steps=STEPS, dt=DT):
    traj = s0.new_empty(s0.size(0), steps + 1, s0.size(1))
    traj[:, 0] = s0
    for k in range(steps):
        traj[:, k + 1] = heun(f, traj[:, k], dt)
    return traj


def simulate(n):
    s0 = torch.rand(n, 2) * torch.tensor([3.0, 2.0]) - torch.tensor([1.5, 1.0])
    with torch.no_grad():
        return rollout(true_field, s0)


train_traj, test_traj = simulate(128), simulate(32)
train_traj = train_traj + 0.01 * torch.randn_like(train_traj)

field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
lr_schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)

for it in range(1, 101):
    idx = torch.randperm(len(train_traj))[:32]
    obs = train_traj[idx]
    # curriculum: longer horizons as training goes on
    horizon = min(STEPS, 3 + it // 4)
    pred = rollout(field, obs[:, 0], horizon)
    loss = ((pred - obs[:, :horizon + 1]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(field.parameters(), 1.0)
    optimizer.step()
    if it % 20 == 0:
        lr_schedule.step()
        with torch.no_grad():
            err = (rollout(field, test_traj[:, 0]) - test_traj).pow(2).mean().sqrt()
        print(f"iter {it}: horizon {horizon} train {loss.item():.5f} test rmse {err.item():.4f}")
