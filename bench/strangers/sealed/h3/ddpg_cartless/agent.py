import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F

from nets import Policy, QFunction


class DDPGAgent:
    def __init__(self, obs_dim, act_dim, device, gamma=0.97, tau=0.02):
        self.device = device
        self.gamma, self.tau = gamma, tau
        self.pi = Policy(obs_dim, act_dim).to(device)
        self.q = QFunction(obs_dim, act_dim).to(device)
        self.pi_targ = copy.deepcopy(self.pi)
        self.q_targ = copy.deepcopy(self.q)
        self.pi_opt = torch.optim.Adam(self.pi.parameters(), 1e-3)
        self.q_opt = torch.optim.Adam(self.q.parameters(), 2e-3)
        self.memory = deque(maxlen=5000)

    @torch.no_grad()
    def act(self, obs, noise=0.0):
        a = self.pi(torch.as_tensor(obs, device=self.device)).cpu().numpy()
        return np.clip(a + noise * np.random.randn(*a.shape), -1, 1)

    def _sample(self, n):
        s, a, r, s2, d = map(np.array, zip(*random.sample(self.memory, n)))
        return [torch.as_tensor(v, dtype=torch.float32, device=self.device) for v in (s, a, r, s2, d)]

    def compute_losses(self, batch):
        s, a, r, s2, d = batch
        with torch.no_grad():
            target = r + self.gamma * (1 - d) * self.q_targ(s2, self.pi_targ(s2))
        return {
            "critic": F.mse_loss(self.q(s, a), target),
            "actor": -self.q(s, self.pi(s)).mean(),
        }

    def _polyak(self):
        with torch.no_grad():
            for net, targ in ((self.pi, self.pi_targ), (self.q, self.q_targ)):
                for p, pt in zip(net.parameters(), targ.parameters()):
                    pt.lerp_(p, self.tau)

    def update(self, batch_size=64):
        losses = self.compute_losses(self._sample(batch_size))
        for name, opt in (("critic", self.q_opt), ("actor", self.pi_opt)):
            opt.zero_grad()
            losses[name].backward()
            opt.step()
        self._polyak()
        return {k: v.item() for k, v in losses.items()}
