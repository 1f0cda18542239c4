# DQN on a windy corridor, no gym needed. start left, goal right, falling wind pushes back
import collections
import random

import torch
import torch.nn as nn

random.seed(0)
torch.manual_seed(0)
N = 10


class Corridor:
    def reset(self):
        self.pos, self.t = 0, 0
        return self.obs()

    def obs(self):
        o = torch.zeros(N)
        o[self.pos] = 1
        return o

    def step(self, a):
        move = 1 if a == 1 else -1
        if random.random() < 0.1:
            move = -1
        self.pos = min(N - 1, max(0, self.pos + move))
        self.t += 1
        goal = self.pos == N - 1
        return self.obs(), (1.0 if goal else -0.01), goal, self.t >= 60


def mlp():
    return nn.Sequential(nn.Linear(N, 32), nn.ReLU(), nn.Linear(32, 2))


q, q_target = mlp(), mlp()
q_target.load_state_dict(q.state_dict())
q_target.eval()
opt = torch.optim.Adam(q.parameters(), lr=2e-3)
buf = collections.deque(maxlen=5000)
env = Corridor()
eps, gamma, total = 1.0, 0.97, 0


def learn():
    s, a, r, s2, done = zip(*random.sample(buf, 32))
    s, s2 = torch.stack(s), torch.stack(s2)
    a, r, done = torch.tensor(a), torch.tensor(r), torch.tensor(done, dtype=torch.float32)
    with torch.no_grad():
        pick = q(s2).argmax(1, keepdim=True)            # double DQN
        nxt = q_target(s2).gather(1, pick).squeeze(1)
        y = r + gamma * (1 - done) * nxt
    loss = nn.functional.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


@torch.no_grad()
def greedy_steps(n=10):
    test_env, lens = Corridor(), []
    for _ in range(n):
        s, over = test_env.reset(), False
        while not over:
            s, _, goal, late = test_env.step(int(q(s).argmax()))
            over = goal or late
        lens.append(test_env.t)
    return sum(lens) / n


for ep in range(1, 81):
    s, over = env.reset(), False
    while not over:
        if random.random() < eps:
            act = random.randrange(2)
        else:
            with torch.no_grad():
                act = int(q(s).argmax())
        s2, rew, goal, late = env.step(act)
        buf.append((s, act, rew, s2, goal))      # a time-out is not terminal, so it keeps its bootstrap
        s, over, total = s2, goal or late, total + 1
        if len(buf) > 200:
            learn()
        if total % 200 == 0:
            q_target.load_state_dict(q.state_dict())
        eps = max(0.05, eps * 0.998)
    if ep % 20 == 0:
        print(f"episode {ep} steps {total} eps {eps:.2f} greedy length {greedy_steps():.1f}")
