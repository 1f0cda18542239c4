# actor-critic on a little treasure map
import json
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

MAP = json.loads("""
{"size": 5, "start": [0, 0], "treasure": [3, 3], "rocks": [[1, 1], [2, 3], [3, 1]], "max_steps": 40}
""")


class TreasureMap:
    MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]

    def __init__(self, spec):
        self.size, self.limit = spec["size"], spec["max_steps"]
        self.start = tuple(spec["start"])
        self.treasure = spec["treasure"]
        self.rocks = {tuple(r) for r in spec["rocks"]}

    def reset(self):
        self.pos, self.t = self.start, 0
        return self.observe()

    def observe(self):
        grid = np.zeros((self.size, self.size), np.float32)
        grid[self.pos] = 1.0
        return torch.from_numpy(grid.ravel())

    def step(self, action):
        dr, dc = self.MOVES[action]
        r = min(max(self.pos[0] + dr, 0), self.size - 1)
        c = min(max(self.pos[1] + dc, 0), self.size - 1)
        if (r, c) not in self.rocks:
            self.pos = (r, c)
        self.t += 1
        found = self.pos == self.treasure
        return self.observe(), float(found), found or self.t >= self.limit


class ActorCritic(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_obs, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, n_act), nn.Linear(64, 1)
        nn.init.zeros_(self.v.weight)
        nn.init.zeros_(self.v.bias)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def play(env, agent):
    obs, done = env.reset(), False
    seen, acts, rewards = [], [], []
    while not done:
        with torch.no_grad():
            dist, _ = agent(obs)
        a = dist.sample()
        seen.append(obs)
        acts.append(a)
        obs, r, done = env.step(a.item())
        rewards.append(r)
    return torch.stack(seen), torch.stack(acts), rewards


def returns_to_go(rewards, gamma):
    out, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        out.append(g)
    return torch.tensor(out[::-1])


def learn(iterations=60, episodes=8, gamma=0.95):
    torch.manual_seed(1)
    env = TreasureMap(MAP)
    agent = ActorCritic(env.size ** 2, 4)
    opt = torch.optim.Adam(agent.parameters(), lr=1e-2)
    for it in range(1, iterations + 1):
        batch = [play(env, agent) for _ in range(episodes)]
        obs = torch.cat([b[0] for b in batch])
        act = torch.cat([b[1] for b in batch])
        ret = torch.cat([returns_to_go(b[2], gamma) for b in batch])
        dist, value = agent(obs)
        adv = ret - value.detach()
        loss = -(dist.log_prob(act) * adv).mean() + 0.5 * (value - ret).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 10 == 0:
            score = np.mean([sum(b[2]) for b in batch])
            steps = np.mean([len(b[2]) for b in batch])
            print(f"iter {it:3d} score {score:.2f} steps {steps:.1f} loss {loss.item():+.4f} entropy {dist.entropy().mean().item():.3f}")


learn()
