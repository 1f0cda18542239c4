"""REINFORCE with a learned value baseline on a hand-written cart-pole (no gym needed)."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

random.seed(1)
torch.manual_seed(1)


class CartPole:
    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return self.s

    def step(self, action):
        x, xd, th, thd = self.s
        f = 10.0 if action == 1 else -10.0
        tmp = (f + 0.05 * thd ** 2 * math.sin(th)) / 1.1
        tha = (9.8 * math.sin(th) - math.cos(th) * tmp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        xa = tmp - 0.05 * tha * math.cos(th) / 1.1
        self.s = [x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha]
        self.t += 1
        fell = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.209
        return self.s, 1.0, fell or self.t >= 200


policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
value = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
opt = torch.optim.Adam([{"params": policy.parameters(), "lr": 5e-3}, {"params": value.parameters(), "lr": 1e-2}])


def discounted(rewards, gamma=0.99):
    out, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        out.append(g)
    return torch.tensor(out[::-1])


env = CartPole()
recent = []
for episode in range(1, 151):
    log_probs, values, entropies, rewards = [], [], [], []
    s, done = env.reset(), False
    while not done:
        obs = torch.tensor(s)
        dist = Categorical(logits=policy(obs))
        action = dist.sample()
        s, r, done = env.step(action.item())
        log_probs.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        values.append(value(obs).squeeze())
        rewards.append(r)

    returns = discounted(rewards)
    v = torch.stack(values)
    adv = returns - v.detach()
    adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    pg = -(torch.stack(log_probs) * adv).mean()
    loss = pg + 0.5 * F.smooth_l1_loss(v, returns) - 0.01 * torch.stack(entropies).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*policy.parameters(), *value.parameters()], 5.0)
    opt.step()

    recent.append(sum(rewards))
    if episode % 30 == 0:
        print(f"episode {episode}: mean length {sum(recent[-30:]) / 30:.1f}")
