import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim, limit):
        super().__init__()
        self.limit = limit
        self.net = nn.Sequential(nn.Linear(obs_dim, 128), nn.ReLU(),
                                 nn.Linear(128, 128), nn.ReLU(),
                                 nn.Linear(128, act_dim), nn.Tanh())

    def forward(self, s):
        return self.limit * self.net(s)


class Critic(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim + act_dim, 128), nn.ReLU(),
                                 nn.Linear(128, 128), nn.ReLU(),
                                 nn.Linear(128, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], dim=-1)).squeeze(-1)


class ReplayBuffer:
    def __init__(self, size=50_000):
        self.data = deque(maxlen=size)

    def add(self, *item):
        self.data.append(item)

    def sample(self, n):
        s, a, r, s2 = zip(*random.sample(self.data, n))
        as_t = lambda x: torch.as_tensor(np.stack(x), dtype=torch.float32)
        return as_t(s), as_t(a), torch.tensor(r, dtype=torch.float32), as_t(s2)


class DDPG:
    def __init__(self, obs_dim, act_dim, limit, gamma=0.99, tau=0.005):
        self.actor, self.critic = Actor(obs_dim, act_dim, limit), Critic(obs_dim, act_dim)
        self.actor_t, self.critic_t = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.opt_a = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.gamma, self.tau, self.limit = gamma, tau, limit

    @torch.no_grad()
    def act(self, obs, noise=0.2):
        a = self.actor(torch.as_tensor(obs)).numpy()
        return np.clip(a + noise * np.random.randn(*a.shape), -self.limit, self.limit).astype(np.float32)

    def losses(self, batch):
        s, a, r, s2 = batch
        with torch.no_grad():
            # pendulum never terminates, only truncates
            target = r + self.gamma * self.critic_t(s2, self.actor_t(s2))
        critic_loss = F.mse_loss(self.critic(s, a), target)
        actor_loss = -self.critic(s, self.actor(s)).mean()
        return {"critic": critic_loss, "actor": actor_loss}

    def update(self, batch):
        losses = self.losses(batch)
        for name, opt in (("critic", self.opt_c), ("actor", self.opt_a)):
            opt.zero_grad()
            losses[name].backward()
            opt.step()
        with torch.no_grad():
            for net, tgt in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
                for p, pt in zip(net.parameters(), tgt.parameters()):
                    pt.lerp_(p, self.tau)
        return {k: v.item() for k, v in losses.items()}
