"""TD3 on a point mass that has to be pushed to the origin."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class PointMass:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.x = self.rng.uniform(-1, 1, 4)
        self.x[2:] *= 0.1
        self.t = 0
        return self.x.astype(np.float32)

    def step(self, a):
        self.x[2:] = 0.9 * self.x[2:] + 0.1 * np.clip(a, -1, 1)
        self.x[:2] += self.x[2:]
        self.t += 1
        r = -float(np.linalg.norm(self.x[:2]))
        return self.x.astype(np.float32), r, False, self.t >= 50


class ReplayBuffer:
    def __init__(self, size=20000):
        self.s = np.zeros((size, 4), np.float32)
        self.a = np.zeros((size, 2), np.float32)
        self.r = np.zeros((size, 1), np.float32)
        self.s2 = np.zeros((size, 4), np.float32)
        self.d = np.zeros((size, 1), np.uint8)
        self.n = self.ptr = 0
        self.size = size

    def add(self, s, a, r, s2, terminal):
        i = self.ptr
        self.s[i], self.a[i], self.r[i], self.s2[i], self.d[i] = s, a, r, s2, terminal
        self.ptr = (i + 1) % self.size
        self.n = min(self.n + 1, self.size)

    def sample(self, bs):
        i = np.random.randint(0, self.n, bs)
        return tuple(torch.from_numpy(v[i]).float() for v in (self.s, self.a, self.r, self.s2, self.d))


def net(n_in, n_out, *tail):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_out), *tail)


class TwinQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = net(6, 1), net(6, 1)

    def forward(self, s, a):
        sa = torch.cat([s, a], 1)
        return self.q1(sa), self.q2(sa)


class TD3:
    def __init__(self, gamma=0.98, tau=0.01, policy_delay=2):
        self.actor, self.critic = net(4, 2, nn.Tanh()), TwinQ()
        self.actor_t = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_t = copy.deepcopy(self.critic).requires_grad_(False)
        self.opt_a = torch.optim.Adam(self.actor.parameters(), 1e-3)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), 1e-3)
        self.gamma, self.tau, self.delay, self.it = gamma, tau, policy_delay, 0

    @torch.no_grad()
    def act(self, s, noise=0.0):
        a = self.actor(torch.from_numpy(s).unsqueeze(0)).squeeze(0).numpy()
        return np.clip(a + noise * np.random.randn(2), -1, 1)

    def update(self, buf, bs=64):
        self.it += 1
        s, a, r, s2, d = buf.sample(bs)
        with torch.no_grad():
            eps = (0.2 * torch.randn_like(a)).clamp(-0.5, 0.5)
            a2 = (self.actor_t(s2) + eps).clamp(-1, 1)
            y = r + self.gamma * (1 - d) * torch.min(*self.critic_t(s2, a2))
        q1, q2 = self.critic(s, a)
        loss = F.mse_loss(q1, y) + F.mse_loss(q2, y)
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        if self.it % self.delay == 0:
            actor_loss = -self.critic(s, self.actor(s))[0].mean()
            self.opt_a.zero_grad()
            actor_loss.backward()
            self.opt_a.step()
            for m, t in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
                for p, pt in zip(m.parameters(), t.parameters()):
                    pt.lerp_(p.detach(), self.tau)


def run(env, agent, buf=None, noise=0.0):
    s, total, over = env.reset(), 0.0, False
    while not over:
        a = agent.act(s, noise)
        s2, r, terminal, over = env.step(a)
        if buf is not None:
            buf.add(s, a, r, s2, terminal)
            if buf.n > 500:
                agent.update(buf)
        s, total = s2, total + r
    return total


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    agent, buf, env, test_env = TD3(), ReplayBuffer(), PointMass(0), PointMass(1)
    for ep in range(1, 61):
        run(env, agent, buf, noise=0.3)
        if ep % 15 == 0:
            print(ep, "mean return", round(np.mean([run(test_env, agent) for _ in range(10)]), 2))
