# Double DQN on a 5x5 grid with a pit, plain numpy replay memory
import random
from copy import deepcopy

import numpy as np
import torch
from torch import nn

SIZE, GOAL, PIT = 5, (4, 4), (2, 2)
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class Grid:
    def reset(self):
        self.pos, self.t = (0, 0), 0
        return self.obs()

    def obs(self):
        return np.array([self.pos[0] / 4, self.pos[1] / 4, self.t / 30], dtype=np.float32)

    def step(self, a):
        r, c = (min(max(p + d, 0), SIZE - 1) for p, d in zip(self.pos, MOVES[a]))
        self.pos, self.t = (r, c), self.t + 1
        if self.pos == GOAL:
            return self.obs(), 1.0, True
        if self.pos == PIT:
            return self.obs(), -1.0, True
        return self.obs(), -0.02, self.t >= 30


class Memory:
    """One row for each transition: obs | action | reward | done | next obs."""

    def __init__(self, capacity, obs_dim):
        self.rows = np.zeros((capacity, 2 * obs_dim + 3), dtype=np.float32)
        self.obs_dim, self.capacity, self.count = obs_dim, capacity, 0

    def push(self, obs, action, reward, done, nxt):
        self.rows[self.count % self.capacity] = np.concatenate([obs, [action, reward, done], nxt])
        self.count += 1

    def sample(self, n):
        rows = self.rows[np.random.randint(0, min(self.count, self.capacity), n)]
        t = torch.from_numpy(rows)
        d = self.obs_dim
        return t[:, :d], t[:, d], t[:, d + 1], t[:, d + 2], t[:, d + 3:]


def q_net():
    return nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))


class Agent:
    def __init__(self, gamma=0.95, lr=2e-3):
        self.online, self.gamma = q_net(), gamma
        self.target = deepcopy(self.online).requires_grad_(False)
        self.memory = Memory(4000, 3)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=lr)

    def act(self, obs, eps):
        if random.random() < eps:
            return random.randrange(4)
        with torch.no_grad():
            return int(self.online(torch.from_numpy(obs)).argmax())

    def learn(self, n=64):
        s, a, r, done, s2 = self.memory.sample(n)
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            goal = r + self.gamma * (1 - done) * self.target(s2).gather(1, best).squeeze(1)
        q = self.online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        for p, tp in zip(self.online.parameters(), self.target.parameters()):
            tp.lerp_(p.detach(), 0.02)
        return loss.item()


def play(episodes=150):
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    env, agent, scores = Grid(), Agent(), []
    for ep in range(episodes):
        obs, done, score = env.reset(), False, 0.0
        while not done:
            a = agent.act(obs, eps=max(0.05, 1 - ep / 80))
            nxt, r, done = env.step(a)
            agent.memory.push(obs, a, r, done, nxt)
            obs, score = nxt, score + r
            if agent.memory.count > 200 and agent.memory.count % 2 == 0:
                loss = agent.learn()
        scores.append(score)
        if (ep + 1) % 30 == 0:
            print(f"episode {ep + 1}: mean score {np.mean(scores[-30:]):.2f}, loss {loss:.4f}")


if __name__ == "__main__":
    play()
