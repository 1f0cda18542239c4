# DQN on a small windy grid, my own env. Target net is hard-synced, double DQN targets.
import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

random.seed(3); np.random.seed(3); torch.manual_seed(3)
SIZE, GAMMA = 5, 0.95
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class Grid:
    def reset(self):
        self.pos, self.t = [random.randrange(SIZE), random.randrange(SIZE)], 0
        self.goal = (SIZE - 1, SIZE - 1)
        return self.obs()

    def obs(self):
        o = np.zeros((2, SIZE, SIZE), dtype=np.float32)
        o[0][tuple(self.pos)] = 1
        o[1][self.goal] = 1
        return o.ravel()

    def step(self, a):
        if random.random() < 0.1:
            a = random.randrange(4)
        dx, dy = MOVES[a]
        self.pos = [min(SIZE - 1, max(0, self.pos[0] + dx)), min(SIZE - 1, max(0, self.pos[1] + dy))]
        self.t += 1
        done = tuple(self.pos) == self.goal
        return self.obs(), 1.0 if done else -0.02, done, self.t >= 25


def q_net():
    return nn.Sequential(nn.Linear(2 * SIZE * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))


online = q_net()
target = copy.deepcopy(online).requires_grad_(False)
optim = torch.optim.Adam(online.parameters(), lr=2e-3)
memory = deque(maxlen=5000)
env = Grid()


def act(o, eps):
    if random.random() < eps:
        return random.randrange(4)
    with torch.no_grad():
        return int(online(torch.from_numpy(o)).argmax())


def learn():
    batch = random.sample(memory, 64)
    o, a, r, o2, d = (torch.as_tensor(np.array(c)) for c in zip(*batch))
    q = online(o).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        best = online(o2).argmax(1, keepdim=True)
        goal = r.float() + GAMMA * target(o2).gather(1, best).squeeze(1) * (1 - d.float())
    loss = nn.functional.smooth_l1_loss(q, goal)
    optim.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(online.parameters(), 1.0)
    optim.step()
    return loss.item()


def play(n=40):
    total = 0.0
    for _ in range(n):
        o, over = env.reset(), False
        while not over:
            o, r, done, late = env.step(act(o, 0.0))
            total += r
            over = done or late
    return total / n


steps, best_score, best_net = 0, -np.inf, None
for episode in range(1, 201):
    o, over = env.reset(), False
    while not over:
        a = act(o, max(0.05, 1 - episode / 80))
        o2, r, done, late = env.step(a)
        memory.append((o, a, r, o2, done))
        o, over, steps = o2, done or late, steps + 1
        if len(memory) > 200 and steps % 2 == 0:
            learn()
        if steps % 200 == 0:
            target.load_state_dict(online.state_dict())
    if episode % 40 == 0:
        score = play()
        print(f"episode {episode} steps {steps} greedy return {score:.3f}")
        if score > best_score:
            best_score, best_net = score, copy.deepcopy(online)

# only for playing later on, training is over
torch.save(best_net.state_dict(), "grid_policy.pt")
