# my first dqn :) own cartpole so i dont need gym
import copy
import math
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class CartPole:
    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.s)

    def step(self, a):
        x, xd, th, thd = self.s
        force = 10.0 if a == 1 else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (force + 0.05 * thd ** 2 * s) / 1.1
        thacc = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        xacc = tmp - 0.05 * thacc * c / 1.1
        self.s = [x + 0.02 * xd, xd + 0.02 * xacc, th + 0.02 * thd, thd + 0.02 * thacc]
        self.t += 1
        fail = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.2095
        return list(self.s), 1.0, fail, fail or self.t >= 200


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, s):
        return self.body(s)


class Memory:
    def __init__(self, cap=10000):
        self.buf = deque(maxlen=cap)

    def push(self, *tr):
        self.buf.append(tr)

    def sample(self, n):
        s, a, r, s2, d = zip(*random.sample(self.buf, n))
        return (torch.tensor(s), torch.tensor(a).unsqueeze(1), torch.tensor(r),
                torch.tensor(s2), torch.tensor(d, dtype=torch.float32))


random.seed(0)
torch.manual_seed(0)
env, mem = CartPole(), Memory()
q = QNet()
target_q = copy.deepcopy(q).eval()
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
GAMMA, BATCH, SYNC = 0.99, 64, 200
steps = 0
history = []

for episode in range(80):
    s, done, ret = env.reset(), False, 0.0
    while not done:
        eps = max(0.05, 1.0 - steps / 1500)
        if random.random() < eps:
            a = random.randrange(2)
        else:
            with torch.no_grad():
                a = q(torch.tensor(s)).argmax().item()
        s2, r, terminal, done = env.step(a)
        mem.push(s, a, r, s2, terminal)
        s = s2
        ret += r
        steps += 1

        if len(mem.buf) >= 500:
            bs, ba, br, bs2, bd = mem.sample(BATCH)
            q_sa = q(bs).gather(1, ba)
            with torch.no_grad():
                best_next = target_q(bs2).max(1).values
                y = br + GAMMA * best_next * (1 - bd)
            loss = F.smooth_l1_loss(q_sa, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if steps % SYNC == 0:
            target_q.load_state_dict(q.state_dict())
    history.append(ret)
    if (episode + 1) % 10 == 0:
        print(f"episode {episode + 1}  mean return {sum(history[-10:]) / 10:.1f}")
