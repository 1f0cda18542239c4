import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.default_rng(0)
torch.manual_seed(0)


class Reach:
    """point mass has to get to the origin, 2-d force"""

    def reset(self):
        self.p, self.v, self.t = rng.uniform(-1, 1, 2), np.zeros(2), 0
        return self.obs()

    def obs(self):
        return np.concatenate([self.p, self.v]).astype(np.float32)

    def step(self, a):
        self.v = 0.9 * self.v + 0.1 * np.clip(a, -1, 1)
        self.p = np.clip(self.p + 0.3 * self.v, -2, 2)
        self.t += 1
        return self.obs(), float(-np.linalg.norm(self.p)), self.t >= 50


def mlp(i, o, last=nn.Identity):
    return nn.Sequential(nn.Linear(i, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, o), last())


actor, q1, q2 = mlp(4, 2, nn.Tanh), mlp(6, 1), mlp(6, 1)
actor_t, q1_t, q2_t = (copy.deepcopy(m).requires_grad_(False) for m in (actor, q1, q2))
pi_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
q_params = list(q1.parameters()) + list(q2.parameters())
q_opt = torch.optim.Adam(q_params, lr=1e-3)

S, A, R, S2 = (np.zeros((20000, d), np.float32) for d in (4, 2, 1, 4))
size = 0


def q(net, s, a):
    return net(torch.cat([s, a], 1))


def update(step, batch=128, gamma=0.97, tau=0.01):
    i = rng.integers(0, size, batch)
    s, a, r, s2 = (torch.from_numpy(x[i]) for x in (S, A, R, S2))
    with torch.no_grad():
        noise = (0.2 * torch.randn_like(a)).clamp_(-0.5, 0.5)
        a2 = (actor_t(s2) + noise).clamp_(-1, 1)
        # episodes end by the clock only, so there is always a next value
        target = r + gamma * torch.min(q(q1_t, s2, a2), q(q2_t, s2, a2))
    q_loss = F.mse_loss(q(q1, s, a), target) + F.mse_loss(q(q2, s, a), target)
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()

    if step % 2:
        return
    for p in q_params:
        p.requires_grad_(False)
    pi_loss = -q(q1, s, actor(s)).mean()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()
    for p in q_params:
        p.requires_grad_(True)

    with torch.no_grad():
        for net, tgt in ((actor, actor_t), (q1, q1_t), (q2, q2_t)):
            for p, pt in zip(net.parameters(), tgt.parameters()):
                pt.mul_(1 - tau).add_(tau * p)


env, step = Reach(), 0
for episode in range(40):
    o, done, ret = env.reset(), False, 0.0
    while not done:
        if episode < 5:
            a = rng.uniform(-1, 1, 2)
        else:
            with torch.no_grad():
                a = actor(torch.from_numpy(o)).numpy()
            a = np.clip(a + 0.1 * rng.standard_normal(2), -1, 1)
        o2, r, done = env.step(a)
        k = size % len(S)
        S[k], A[k], R[k], S2[k] = o, a, r, o2
        size, o, ret, step = size + 1, o2, ret + r, step + 1
        if episode >= 5:
            update(step)
    if episode % 5 == 4:
        print(f"episode {episode + 1} return {ret:.2f}")
