"""Synchronous advantage actor-critic with GAE. There is no data set: every batch comes from the current policy."""
import argparse
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from envs import WindyGrid


class Agent(nn.Module):
    def __init__(self, d, k, h=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d, h), nn.Tanh())
        self.pi, self.v = nn.Linear(h, k), nn.Linear(h, 1)

    def forward(self, o):
        h = self.trunk(o)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


@torch.no_grad()
def rollout(agent, env, steps, recent):
    """acting needs no graph; log-probabilities are recomputed in the update"""
    obs, act, rew, val, cut, boot = [], [], [], [], [], []
    o = torch.from_numpy(env.observe())
    for _ in range(steps):
        dist, v = agent(o)
        a = dist.sample()
        nxt, r, goal, late, final = env.step(a.numpy())
        obs.append(o), act.append(a), val.append(v), rew.append(torch.from_numpy(r))
        done = goal | late
        recent.extend(goal[done].tolist())
        # a time-out is not a terminal state: bootstrap from the state that was really reached
        boot.append(agent(torch.from_numpy(final))[1] * torch.from_numpy(late).float())
        cut.append(torch.from_numpy(done).float())
        o = torch.from_numpy(nxt)
    last = agent(o)[1]
    return [torch.stack(z) for z in (obs, act, rew, val, cut, boot)], last


def gae(rew, val, cut, boot, last, gamma, lam):
    adv, run = torch.zeros_like(rew), torch.zeros_like(last)
    for t in reversed(range(len(rew))):
        follow = (last if t == len(rew) - 1 else val[t + 1]) * (1 - cut[t]) + boot[t]
        delta = rew[t] + gamma * follow - val[t]
        run = delta + gamma * lam * (1 - cut[t]) * run
        adv[t] = run
    return adv, adv + val


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=120)
    ap.add_argument("--envs", type=int, default=16)
    ap.add_argument("--horizon", type=int, default=10)
    a = ap.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    env = WindyGrid(a.envs, seed=1)
    agent = Agent(25, 4)
    opt = torch.optim.RMSprop(agent.parameters(), lr=3e-3, alpha=0.99)
    recent = deque(maxlen=200)
    for u in range(1, a.updates + 1):
        (obs, act, rew, val, cut, boot), last = rollout(agent, env, a.horizon, recent)
        adv, target = gae(rew, val, cut, boot, last, 0.97, 0.95)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        dist, v = agent(obs.flatten(0, 1))
        policy = -(dist.log_prob(act.flatten()) * adv.flatten()).mean()
        value = (v - target.flatten()).pow(2).mean()
        loss = policy + 0.5 * value - 0.01 * dist.entropy().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        opt.step()
        if u % 30 == 0:
            print(f"update {u}: goals reached in {np.mean(recent):.2%} of recent episodes, value loss {value.item():.3f}")


if __name__ == "__main__":
    main()
