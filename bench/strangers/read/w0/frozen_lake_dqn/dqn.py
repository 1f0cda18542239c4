import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F


class Lake:
    """4x4 ice: reach the far corner, holes end the episode."""

    HOLES, GOAL = {5, 7, 11, 12}, 15
    MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.pos, self.t = 0, 0
        return self.pos

    def step(self, action):
        if self.rng.random() < 0.05:
            action = self.rng.randrange(4)
        r, c = divmod(self.pos, 4)
        dr, dc = self.MOVES[action]
        r, c = min(max(r + dr, 0), 3), min(max(c + dc, 0), 3)
        self.pos, self.t = 4 * r + c, self.t + 1
        terminal = self.pos in self.HOLES or self.pos == self.GOAL
        return self.pos, float(self.pos == self.GOAL) - 0.01, terminal, self.t >= 40


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Embedding(16, 32)
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, 4)

    def forward(self, s):
        h = F.relu(self.cell(s))
        a = self.advantage(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)


class Agent:
    def __init__(self, rng, gamma=0.97):
        self.rng, self.gamma = rng, gamma
        self.online, self.frozen = QNet(), QNet()
        self.frozen.load_state_dict(self.online.state_dict())
        self.frozen.requires_grad_(False)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=3e-3)
        self.memory = deque(maxlen=5000)

    def act(self, s, eps):
        if self.rng.random() < eps:
            return self.rng.randrange(4)
        with torch.no_grad():
            return int(self.online(torch.tensor([s])).argmax())

    def learn(self, batch=64):
        s, a, r, s2, end = (torch.tensor(col) for col in zip(*self.rng.sample(list(self.memory), batch)))
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            target = r + self.gamma * self.frozen(s2).gather(1, best).squeeze(1) * (~end)
        q = self.online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q, target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def greedy_score(agent, episodes=50):
    env, wins = Lake(random.Random(1000)), 0
    for _ in range(episodes):
        s, over = env.reset(), False
        while not over:
            s, _, terminal, late = env.step(agent.act(s, 0.0))
            over = terminal or late
        wins += s == Lake.GOAL
    return wins / episodes


def main(episodes=500):
    torch.manual_seed(38)
    rng = random.Random(38)
    env, agent, steps = Lake(rng), Agent(rng), 0
    for ep in range(1, episodes + 1):
        s, over = env.reset(), False
        eps = max(0.05, 1 - ep / 250)
        while not over:
            a = agent.act(s, eps)
            s2, r, terminal, late = env.step(a)
            agent.memory.append((s, a, r, s2, terminal))
            s, over, steps = s2, terminal or late, steps + 1
            if len(agent.memory) >= 200 and steps % 2 == 0:
                agent.learn()
            if steps % 200 == 0:
                agent.frozen.load_state_dict(agent.online.state_dict())
        if ep % 100 == 0:
            print(f"episode {ep} steps {steps} greedy success {greedy_score(agent):.2f}")


if __name__ == "__main__":
    main()
