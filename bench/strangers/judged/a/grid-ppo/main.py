"""PPO with GAE on a small key-and-door grid world, vectorised environments."""
import argparse
from collections import deque

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class VecGrid:
    """n copies of a 5x5 grid; reach the goal cell. Observation: one-hot of agent and goal."""
    MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def __init__(self, n, seed, size=5, limit=20):
        self.n, self.size, self.limit = n, size, limit
        self.rng = np.random.default_rng(seed)
        self.pos = np.zeros((n, 2), int)
        self.goal = np.zeros((n, 2), int)
        self.t = np.zeros(n, int)
        for i in range(n):
            self._reset(i)

    def _reset(self, i):
        self.pos[i], self.goal[i] = self.rng.integers(0, self.size, (2, 2))
        while (self.pos[i] == self.goal[i]).all():
            self.goal[i] = self.rng.integers(0, self.size, 2)
        self.t[i] = 0

    def obs(self):
        o = np.zeros((self.n, 2, self.size, self.size), np.float32)
        i = np.arange(self.n)
        o[i, 0, self.pos[:, 0], self.pos[:, 1]] = 1
        o[i, 1, self.goal[:, 0], self.goal[:, 1]] = 1
        return torch.from_numpy(o.reshape(self.n, -1))

    def step(self, a):
        self.pos = np.clip(self.pos + self.MOVES[a], 0, self.size - 1)
        self.t += 1
        won = (self.pos == self.goal).all(1)
        done = won | (self.t >= self.limit)
        reward = won * 1.0 - 0.02
        for i in np.flatnonzero(done):
            self._reset(i)
        return self.obs(), torch.tensor(reward, dtype=torch.float32), torch.tensor(done, dtype=torch.float32), won


def ortho(layer, gain):
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class ActorCritic(nn.Module):
    def __init__(self, d, a, h=64):
        super().__init__()
        self.body = nn.Sequential(ortho(nn.Linear(d, h), 2 ** 0.5), nn.Tanh(), ortho(nn.Linear(h, h), 2 ** 0.5), nn.Tanh())
        self.pi, self.v = ortho(nn.Linear(h, a), 0.01), ortho(nn.Linear(h, 1), 1.0)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def rollout(env, ac, obs, T):
    buf = {k: [] for k in ("obs", "act", "logp", "rew", "done", "val")}
    outcomes = []
    with torch.no_grad():
        for _ in range(T):
            dist, val = ac(obs)
            act = dist.sample()
            nxt, rew, done, won = env.step(act.numpy())
            for k, v in zip(buf, (obs, act, dist.log_prob(act), rew, done, val)):
                buf[k].append(v)
            outcomes += won[done.numpy().astype(bool)].tolist()
            obs = nxt
        last = ac(obs)[1]
    return {k: torch.stack(v) for k, v in buf.items()}, last, obs, outcomes


def gae(b, last, gamma, lam):
    adv, run = torch.zeros_like(b["rew"]), torch.zeros_like(last)
    nxt = last
    for t in reversed(range(len(adv))):
        alive = 1 - b["done"][t]
        delta = b["rew"][t] + gamma * nxt * alive - b["val"][t]
        run = delta + gamma * lam * alive * run
        adv[t], nxt = run, b["val"][t]
    return adv, adv + b["val"]


def main():
    ap = argparse.ArgumentParser()
    for name, default in dict(envs=16, T=64, iters=25, epochs=4, mb=256, lr=2.5e-3, gamma=0.97, lam=0.95, clip=0.2,
                              vf=0.5, ent=0.01, seed=0).items():
        ap.add_argument(f"--{name}", type=type(default), default=default)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    env = VecGrid(a.envs, a.seed)
    ac = ActorCritic(50, 4)
    opt = torch.optim.Adam(ac.parameters(), lr=a.lr, eps=1e-5)
    decay = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, total_iters=a.iters)
    obs, recent = env.obs(), deque(maxlen=200)

    for it in range(1, a.iters + 1):
        b, last, obs, wins = rollout(env, ac, obs, a.T)
        recent.extend(wins)
        adv, ret = gae(b, last, a.gamma, a.lam)
        flat = {k: v.flatten(0, 1) for k, v in b.items()} | {"adv": adv.flatten(), "ret": ret.flatten()}
        for _ in range(a.epochs):
            for i in torch.randperm(len(flat["adv"])).split(a.mb):
                m = {k: v[i] for k, v in flat.items()}
                dist, val = ac(m["obs"])
                A = (m["adv"] - m["adv"].mean()) / (m["adv"].std() + 1e-8)
                ratio = (dist.log_prob(m["act"]) - m["logp"]).exp()
                pg = -torch.min(ratio * A, ratio.clamp(1 - a.clip, 1 + a.clip) * A).mean()
                loss = pg + a.vf * (val - m["ret"]).square().mean() - a.ent * dist.entropy().mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(ac.parameters(), 0.5)
                opt.step()
        decay.step()                       # once per iteration, total_iters counts iterations
        if it % 5 == 0:
            print(f"iter {it:3d}  success {np.mean(recent):.2f}  lr {decay.get_last_lr()[0]:.1e}")


if __name__ == "__main__":
    main()
