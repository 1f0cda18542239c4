import random
from collections import deque

import torch
from torch import nn

SIZE, GAMMA, SYNC = 4, 0.95, 100
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]
GOAL, PIT = (3, 3), (2, 2)


def observe(pos):
    v = torch.zeros(SIZE * SIZE)
    v[pos[0] * SIZE + pos[1]] = 1
    return v


def env_step(pos, a):
    new = (min(max(pos[0] + MOVES[a][0], 0), SIZE - 1), min(max(pos[1] + MOVES[a][1], 0), SIZE - 1))
    if new == GOAL:
        return new, 1.0, True
    if new == PIT:
        return new, -1.0, True
    return new, -0.04, False


def qnet():
    return nn.Sequential(nn.Linear(SIZE * SIZE, 48), nn.ReLU(), nn.Linear(48, 4))


def greedy_return(net):
    pos, total = (0, 0), 0.0
    for _ in range(20):
        with torch.no_grad():
            a = net(observe(pos)).argmax().item()
        pos, r, done = env_step(pos, a)
        total += r
        if done:
            break
    return total


random.seed(0)
torch.manual_seed(0)
online, target = qnet(), qnet()
target.load_state_dict(online.state_dict())
for p in target.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(online.parameters(), lr=3e-3)
memory = deque(maxlen=3000)
eps, updates, returns = 1.0, 0, []

for episode in range(1, 121):
    pos, total = (0, 0), 0.0
    for _ in range(30):
        if random.random() < eps:
            a = random.randrange(4)
        else:
            with torch.no_grad():
                a = online(observe(pos)).argmax().item()
        nxt, r, done = env_step(pos, a)
        memory.append((observe(pos), a, r, observe(nxt), float(done)))
        pos, total = nxt, total + r
        if len(memory) >= 64:
            s, act, rew, s2, d = zip(*random.sample(memory, 32))
            s, s2 = torch.stack(s), torch.stack(s2)
            act, rew, d = torch.tensor(act), torch.tensor(rew), torch.tensor(d)
            best = online(s2).argmax(1, keepdim=True)
            backup = rew + GAMMA * (1 - d) * target(s2).gather(1, best).squeeze(1)
            q = online(s).gather(1, act[:, None]).squeeze(1)
            loss = nn.functional.smooth_l1_loss(q, backup)
            opt.zero_grad()
            loss.backward()
            opt.step()
            updates += 1
            if updates % SYNC == 0:
                target.load_state_dict(online.state_dict())
        if done:
            break
    eps = max(0.05, eps * 0.96)
    returns.append(total)
    if episode % 20 == 0:
        print(f"episode {episode} mean return {sum(returns[-20:]) / 20:+.2f} greedy {greedy_return(online):+.2f} "
              f"eps {eps:.2f}")
