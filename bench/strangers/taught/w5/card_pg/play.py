"""REINFORCE for a little card game: discard cards, try to end with a hand summing to 21."""
import random
from collections import deque

import torch
import torch.nn as nn

random.seed(1)
torch.manual_seed(1)

N_CARDS = 10
HAND = 5


class Game:
    def reset(self):
        self.hand = [0] * N_CARDS
        for _ in range(HAND):
            self.hand[random.randrange(N_CARDS)] += 1
        self.turn = 0
        return self.obs()

    def obs(self):
        return torch.tensor(self.hand + [self.turn], dtype=torch.float32)

    def legal(self):
        # discard any card that is in the hand, or stop (last action)
        return torch.tensor([c > 0 for c in self.hand] + [True])

    def total(self):
        return sum((i + 1) * c for i, c in enumerate(self.hand))

    def step(self, a):
        self.turn += 1
        done = a == N_CARDS or self.turn >= 6
        if a < N_CARDS:
            self.hand[a] -= 1
            self.hand[random.randrange(N_CARDS)] += 1
        r = 0.0
        if done:
            r = 1.0 - abs(self.total() - 21) / 10.0
        return self.obs(), r, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(N_CARDS + 1, 64), nn.Tanh(), nn.Linear(64, N_CARDS + 1))

    def forward(self, obs, legal):
        logits = self.net(obs)
        logits = logits.masked_fill(~legal, float("-inf"))
        return torch.softmax(logits, dim=-1)


env = Game()
policy = Policy()
opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
ENT = 0.01
GAMMA = 0.99
recent = deque(maxlen=200)
baseline = 0.0

for it in range(60):
    loss = 0.0
    for ep in range(16):
        obs, done = env.reset(), False
        logps, ents, rewards = [], [], []
        while not done:
            probs = policy(obs, env.legal())
            a = torch.multinomial(probs, 1).item()
            logps.append(torch.log(probs[a]))
            ents.append(-(probs * torch.log(probs)).sum())
            obs, r, done = env.step(a)
            rewards.append(r)
        ret, returns = 0.0, []
        for r in reversed(rewards):
            ret = r + GAMMA * ret
            returns.insert(0, ret)
        recent.append(returns[-1])
        baseline = 0.99 * baseline + 0.01 * returns[0]
        adv = torch.tensor(returns) - baseline
        loss = loss - (torch.stack(logps) * adv).sum() - ENT * torch.stack(ents).sum()
    loss = loss / 16
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    opt.step()
    if it % 5 == 0:
        print(it, "loss %.3f" % loss.item(), "reward %.3f" % (sum(recent) / len(recent)))
