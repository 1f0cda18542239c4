import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, n_out))


class DoubleDQN:
    def __init__(self, env, device, gamma=0.97):
        self.device, self.gamma, self.n_act = device, gamma, env.n_act
        self.online = mlp(env.n_obs, env.n_act).to(device)
        self.target = mlp(env.n_obs, env.n_act).to(device)
        self.target.load_state_dict(self.online.state_dict())
        for p in self.target.parameters():
            p.requires_grad = False
        self.opt = torch.optim.Adam(self.online.parameters(), 2e-3)
        self.memory = deque(maxlen=3000)

    @torch.no_grad()
    def act(self, obs, eps):
        if random.random() < eps:
            return random.randrange(self.n_act)
        return self.online(torch.as_tensor(obs, device=self.device)).argmax().item()

    def learn(self, batch=64):
        s, a, r, s2, d = zip(*random.sample(self.memory, batch))
        s = torch.as_tensor(np.stack(s), device=self.device)
        s2 = torch.as_tensor(np.stack(s2), device=self.device)
        a = torch.as_tensor(a, device=self.device).unsqueeze(1)
        r = torch.as_tensor(r, dtype=torch.float32, device=self.device)
        d = torch.as_tensor(d, dtype=torch.float32, device=self.device)
        best = self.online(s2).argmax(1, keepdim=True)
        boot = self.target(s2).gather(1, best).squeeze(1)
        goal = (r + self.gamma * (1 - d) * boot).detach()
        loss = nn.functional.smooth_l1_loss(self.online(s).gather(1, a).squeeze(1), goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        for pt, p in zip(self.target.parameters(), self.online.parameters()):
            pt.data.mul_(0.98).add_(p.data, alpha=0.02)
