import math

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(2)
np.random.seed(2)


class Pole:
    """cart-pole with the usual constants"""

    def reset(self):
        self.s = np.random.uniform(-0.05, 0.05, 4)
        self.t = 0
        return self.s.astype(np.float32)

    def step(self, a):
        x, v, th, w = self.s
        f = 10.0 if a == 1 else -10.0
        tmp = (f + 0.05 * w * w * math.sin(th)) / 1.1
        acc_th = (9.8 * math.sin(th) - math.cos(th) * tmp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        acc_x = tmp - 0.05 * acc_th * math.cos(th) / 1.1
        self.s = np.array([x + 0.02 * v, v + 0.02 * acc_x, th + 0.02 * w, w + 0.02 * acc_th])
        self.t += 1
        fell = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return self.s.astype(np.float32), 1.0, fell or self.t >= 100


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 48), nn.Tanh())
        self.pi = nn.Linear(48, 2)
        self.v = nn.Linear(48, 1)
        self.log_probs, self.values, self.entropies, self.rewards = [], [], [], []

    def act(self, obs):
        h = self.body(torch.from_numpy(obs))
        dist = Categorical(logits=self.pi(h))
        a = dist.sample()
        self.log_probs.append(dist.log_prob(a))
        self.values.append(self.v(h).squeeze(-1))
        self.entropies.append(dist.entropy())
        return a.item()

    def clear(self):
        for box in (self.log_probs, self.values, self.entropies, self.rewards):
            del box[:]


def finish_episode(net, opt, gamma=0.98):
    R, rets = 0.0, []
    for r in reversed(net.rewards):
        R = r + gamma * R
        rets.insert(0, R)
    rets = torch.tensor(rets) / 20.0
    values = torch.stack(net.values)
    advantage = (rets - values).detach()
    policy = -(torch.stack(net.log_probs) * advantage).mean()
    critic = nn.functional.smooth_l1_loss(values, rets)
    loss = policy + critic - 0.003 * torch.stack(net.entropies).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 2.0)
    opt.step()
    net.clear()
    return loss.item()


@torch.no_grad()
def greedy(net, episodes=3):
    env, total = Pole(), 0
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, r, done = env.step(int(net.pi(net.body(torch.from_numpy(obs))).argmax()))
            total += r
    return total / episodes


env, net = Pole(), ActorCritic()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
running = 10.0
for ep in range(1, 71):
    obs, done = env.reset(), False
    while not done:
        obs, r, done = env.step(net.act(obs))
        net.rewards.append(r)
    running = 0.95 * running + 0.05 * len(net.rewards)
    loss = finish_episode(net, opt)
    if ep % 14 == 0:
        print(f"episode {ep} loss {loss:+.3f} running length {running:.1f} greedy {greedy(net):.1f}")
