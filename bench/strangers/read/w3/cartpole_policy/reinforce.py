import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class Pole:
    def __init__(self, rnd):
        self.rnd = rnd

    def reset(self):
        self.s = [self.rnd.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.s)

    def step(self, a):
        x, v, th, w = self.s
        f = 10.0 if a else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (f + 0.05 * w * w * s) / 1.1
        acc = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        xa = tmp - 0.05 * acc * c / 1.1
        self.s = [x + 0.02 * v, v + 0.02 * xa, th + 0.02 * w, w + 0.02 * acc]
        self.t += 1
        return list(self.s), 1.0, abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.209 or self.t >= 150


class ActorCritic(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh())
        self.pi, self.v = nn.Linear(hidden, 2), nn.Linear(hidden, 1)

    def forward(self, s):
        h = self.body(s)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def episode(env, net, gamma=0.98):
    states, actions, rewards, s, over = [], [], [], env.reset(), False
    while not over:
        with torch.no_grad():
            dist, _ = net(torch.tensor(s))
        a = dist.sample().item()
        states.append(s)
        actions.append(a)
        s, r, over = env.step(a)
        rewards.append(r)
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        returns.append(g)
    return states, actions, returns[::-1]


def main(updates=50, episodes_per_update=5):
    torch.manual_seed(0)
    env, net = Pole(random.Random(0)), ActorCritic()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    lengths = []
    for u in range(updates):
        S, A, G = [], [], []
        for _ in range(episodes_per_update):
            s, a, g = episode(env, net)
            S += s
            A += a
            G += g
            lengths.append(len(s))
        dist, value = net(torch.tensor(S))
        G = torch.tensor(G) / 50.0
        advantage = G - value.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        policy = -(dist.log_prob(torch.tensor(A)) * advantage).mean()
        loss = policy + 0.5 * F.mse_loss(value, G) - 0.005 * dist.entropy().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if u % 10 == 9:
            recent = lengths[-25:]
            print(f"update {u + 1} mean length {sum(recent) / len(recent):.1f}")


if __name__ == "__main__":
    main()
