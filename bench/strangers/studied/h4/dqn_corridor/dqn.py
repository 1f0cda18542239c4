import copy
import random
from collections import deque

import torch
from torch import nn

from corridor import Corridor

random.seed(0)
torch.manual_seed(0)
GAMMA, BATCH, SYNC, WARM = 0.97, 64, 100, 200


class Memory:
    def __init__(self, size):
        self.items = deque(maxlen=size)

    def push(self, *transition):
        self.items.append(transition)

    def sample(self, n):
        # the same transition may be drawn many times over the run, that is the point of replay
        obs, act, rew, nxt, done = zip(*random.choices(self.items, k=n))
        return (torch.tensor(obs), torch.tensor(act), torch.tensor(rew), torch.tensor(nxt),
                torch.tensor(done, dtype=torch.float32))


online = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
frozen = copy.deepcopy(online).eval().requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
memory = Memory(5000)
env = Corridor(seed=1)


def act(obs, eps):
    if random.random() < eps:
        return random.randrange(2)
    with torch.no_grad():
        return int(online(torch.tensor(obs)).argmax())


def learn():
    obs, a, r, nxt, done = memory.sample(BATCH)
    q = online(obs).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        best = online(nxt).argmax(1, keepdim=True)
        target = r + GAMMA * (1 - done) * frozen(nxt).gather(1, best).squeeze(1)
    loss = nn.functional.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def greedy_return(episodes=20):
    test_env = Corridor(seed=99)
    total = 0.0
    for _ in range(episodes):
        obs, done = test_env.reset(), False
        while not done:
            obs, rew, done = test_env.step(act(obs, 0.0))
            total += rew
    return total / episodes


step = 0
for episode in range(121):
    obs, done = env.reset(), False
    while not done:
        a = act(obs, max(0.05, 1.0 - step / 1500))
        nxt, rew, done = env.step(a)
        memory.push(obs, a, rew, nxt, done)
        obs = nxt
        step += 1
        if step > WARM:
            learn()
        if step % SYNC == 0:
            frozen.load_state_dict(online.state_dict())
    if episode % 30 == 0:
        print(f"episode {episode:3d}  steps {step:5d}  greedy return {greedy_return():.3f}")
