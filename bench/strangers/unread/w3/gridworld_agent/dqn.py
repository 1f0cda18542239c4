"""DQN with proportional prioritized replay on a 6x6 grid."""
import random
from typing import NamedTuple

import numpy as np
import torch
import torch.nn as nn

DEVICE = torch.device("cuda")
SIZE, GAMMA, BATCH, TARGET_EVERY = 6, 0.97, 64, 200


class Batch(NamedTuple):
    s: torch.Tensor
    a: torch.Tensor
    r: torch.Tensor
    s2: torch.Tensor
    done: torch.Tensor

    def to(self, device):
        return Batch(*(t.to(device, non_blocking=True) for t in self))


class Grid:
    MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def reset(self):
        self.pos, self.goal, self.t = [0, 0], (SIZE - 1, random.randrange(SIZE)), 0
        return self.obs()

    def obs(self):
        o = np.zeros((2, SIZE, SIZE), dtype=np.float32)
        o[0, self.pos[0], self.pos[1]] = 1
        o[1, self.goal[0], self.goal[1]] = 1
        return o.ravel()

    def step(self, a):
        dx, dy = self.MOVES[a]
        self.pos = [min(max(self.pos[0] + dx, 0), SIZE - 1), min(max(self.pos[1] + dy, 0), SIZE - 1)]
        self.t += 1
        win = tuple(self.pos) == self.goal
        return self.obs(), 1.0 if win else -0.02, win, win or self.t >= 40


class PrioritizedReplay:
    def __init__(self, cap, alpha=0.6):
        self.cap, self.alpha, self.data, self.pos = cap, alpha, [], 0
        self.prio = np.zeros(cap, dtype=np.float64)

    def push(self, *tr):
        p = self.prio[:len(self.data)].max() if self.data else 1.0
        if len(self.data) < self.cap:
            self.data.append(tr)
        else:
            self.data[self.pos] = tr
        self.prio[self.pos] = p
        self.pos = (self.pos + 1) % self.cap

    def sample(self, n, beta):
        p = self.prio[:len(self.data)] ** self.alpha
        p /= p.sum()
        idx = np.random.choice(len(p), n, p=p)
        w = (len(p) * p[idx]) ** -beta
        s, a, r, s2, d = zip(*(self.data[i] for i in idx))
        batch = Batch(
            torch.from_numpy(np.stack(s)), torch.tensor(a), torch.tensor(r),
            torch.from_numpy(np.stack(s2)), torch.tensor(d, dtype=torch.float32),
        )
        return idx, batch, torch.as_tensor(w / w.max(), dtype=torch.float32)

    def update(self, idx, td):
        self.prio[idx] = td.abs().cpu().numpy() + 1e-3


def make_net():
    return nn.Sequential(
        nn.Linear(2 * SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)
    ).to(DEVICE)


def main(steps=6000):
    for seeder in (random.seed, np.random.seed, torch.manual_seed):
        seeder(5)
    q, q_target = make_net(), make_net()
    q_target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=5e-4)
    memory, env = PrioritizedReplay(5000), Grid()
    obs, returns, ret = env.reset(), [], 0.0
    for t in range(steps):
        eps = max(0.05, 1 - t / 3000)
        if random.random() < eps:
            act = random.randrange(4)
        else:
            with torch.no_grad():
                act = int(q(torch.from_numpy(obs).to(DEVICE)).argmax())
        nxt, rew, terminal, over = env.step(act)
        memory.push(obs, act, rew, nxt, terminal)
        ret += rew
        obs = nxt
        if over:
            returns.append(ret)
            obs, ret = env.reset(), 0.0
        if t < 500:
            continue
        idx, batch, weights = memory.sample(BATCH, beta=0.4 + 0.6 * t / steps)
        batch = batch.to(DEVICE)
        with torch.no_grad():
            best = q(batch.s2).argmax(1, keepdim=True)
            target = batch.r + GAMMA * (1 - batch.done) * q_target(batch.s2).gather(1, best).squeeze(1)
        pred = q(batch.s).gather(1, batch.a[:, None]).squeeze(1)
        loss = (weights * nn.functional.smooth_l1_loss(pred, target, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10.0)
        optimizer.step()
        memory.update(idx, (target - pred).detach())
        if t % TARGET_EVERY == 0:
            q_target.load_state_dict(q.state_dict())
        if t % 1000 == 0:
            print(f"{t:6d} eps {eps:.2f} mean return {np.mean(returns[-50:]):.3f}")


if __name__ == "__main__":
    main()
