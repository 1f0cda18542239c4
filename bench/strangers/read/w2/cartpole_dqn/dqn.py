"""Double DQN on a hand-written cart-pole."""
import copy
import math
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(0)
GAMMA, TAU, BATCH, WARMUP = 0.98, 0.02, 64, 300


class CartPole:
    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.s)

    def step(self, action):
        x, v, th, w = self.s
        force = 10.0 if action else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (force + 0.05 * w * w * s) / 1.1
        acc_th = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        acc_x = tmp - 0.05 * acc_th * c / 1.1
        self.s = [x + 0.02 * v, v + 0.02 * acc_x, th + 0.02 * w, w + 0.02 * acc_th]
        self.t += 1
        fell = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return list(self.s), 1.0, fell, self.t >= 200


online = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.Adam(online.parameters(), lr=1e-3)
memory = deque(maxlen=10000)


def act(state, eps):
    if random.random() < eps:
        return random.randrange(2)
    with torch.no_grad():
        return online(torch.tensor(state)).argmax().item()


def learn():
    s, a, r, s2, end = (torch.tensor(c) for c in zip(*random.sample(memory, BATCH)))
    with torch.no_grad():
        choice = online(s2).argmax(1, keepdim=True)
        goal = r + GAMMA * (1 - end) * target(s2).gather(1, choice).squeeze(1)
    q = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
    loss = F.smooth_l1_loss(q, goal)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(online.parameters(), 1.0)
    opt.step()
    with torch.no_grad():
        for t, p in zip(target.parameters(), online.parameters()):
            t.mul_(1 - TAU).add_(p, alpha=TAU)
    return loss.item()


env, steps, recent = CartPole(), 0, deque(maxlen=20)
for episode in range(1, 81):
    state, done, score, loss = env.reset(), False, 0.0, float("nan")
    while not done:
        eps = max(0.05, 1 - steps / 1500)
        action = act(state, eps)
        nxt, reward, fell, timeout = env.step(action)
        # a timeout is not a failure, so the value of the next state still counts
        memory.append((state, action, reward, nxt, float(fell)))
        state, done = nxt, fell or timeout
        score += reward
        steps += 1
        if len(memory) >= WARMUP:
            loss = learn()
    recent.append(score)
    if episode % 20 == 0:
        print(f"episode {episode:3d} steps {steps:5d} loss {loss:.4f} score {sum(recent) / len(recent):.1f}")
