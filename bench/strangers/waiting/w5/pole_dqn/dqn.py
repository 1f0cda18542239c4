import copy
import math
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Pole:
    """cart-pole, plain Euler integration"""

    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return torch.tensor(self.s)

    def step(self, a):
        x, v, th, w = self.s
        f = 10.0 if a else -10.0
        tmp = (f + 0.05 * w * w * math.sin(th)) / 1.1
        acc_th = (9.8 * math.sin(th) - math.cos(th) * tmp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        acc_x = tmp - 0.05 * acc_th * math.cos(th) / 1.1
        self.s = [x + 0.02 * v, v + 0.02 * acc_x, th + 0.02 * w, w + 0.02 * acc_th]
        self.t += 1
        fell = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return torch.tensor(self.s), 1.0, fell, self.t >= 200


class Replay:
    def __init__(self, size):
        self.mem = deque(maxlen=size)

    def push(self, s, a, r, s2, fell):
        self.mem.append((s, torch.tensor(a), torch.tensor(r), s2, torch.tensor(float(fell))))

    def sample(self, n):
        cols = zip(*random.sample(self.mem, n))
        return [torch.stack(c).to(device) for c in cols]


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.4, 2.0, 0.21, 2.0]))
        self.body = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.value, self.adv = nn.Linear(64, 1), nn.Linear(64, 2)

    def forward(self, s):
        h = self.body(s / self.scale)
        a = self.adv(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)


online = QNet().to(device)
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.Adam(online.parameters(), lr=1e-3)
env, buf = Pole(), Replay(10000)
GAMMA, TAU = 0.99, 0.01
steps, lengths = 0, []

while steps < 3000:
    s, done, n = env.reset(), False, 0
    while not done:
        eps = max(0.05, 1.0 - steps / 1500)
        if random.random() < eps:
            a = random.randrange(2)
        else:
            with torch.no_grad():
                a = online(s.to(device)).argmax().item()
        s2, r, fell, timeout = env.step(a)
        buf.push(s, a, r, s2, fell)
        s, done, n, steps = s2, fell or timeout, n + 1, steps + 1

        if len(buf.mem) >= 256 and steps % 2 == 0:
            bs, ba, br, bs2, bf = buf.sample(64)
            with torch.no_grad():
                best = online(bs2).argmax(1, keepdim=True)
                y = br + GAMMA * (1 - bf) * target(bs2).gather(1, best).squeeze(1)
            q = online(bs).gather(1, ba.unsqueeze(1)).squeeze(1)
            loss = F.smooth_l1_loss(q, y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(online.parameters(), 10.0)
            opt.step()
            with torch.no_grad():
                for p, tp in zip(online.parameters(), target.parameters()):
                    tp.lerp_(p, TAU)
    lengths.append(n)
    if len(lengths) % 10 == 0:
        print(f"episode {len(lengths)} steps {steps} mean length {sum(lengths[-10:]) / 10:.1f}")
