"""Deep Q-learning on a tiny hand-written cart-pole."""
import math
import random
from collections import deque, namedtuple
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Step = namedtuple("Step", "obs action reward nxt done")


class CartPole:
    # rough size of position, speed, angle, angular speed
    scale = np.array([2.4, 2.0, 0.21, 2.0])

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.s = self.rng.uniform(-0.05, 0.05, 4)
        self.t = 0
        return self.observe()

    def observe(self):
        return self.s.astype(np.float32) / self.scale

    def step(self, a):
        x, xd, th, thd = self.s
        force = 10.0 if a == 1 else -10.0
        tmp = (force + 0.05 * thd ** 2 * math.sin(th)) / 1.1
        tha = (9.8 * math.sin(th) - math.cos(th) * tmp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        xa = tmp - 0.05 * tha * math.cos(th) / 1.1
        self.s = np.array([x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha])
        self.t += 1
        fell = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return self.observe(), 1.0 - abs(self.s[2]), fell, fell or self.t >= 200


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, s):
        return self.f(s)


class Agent:
    def __init__(self, gamma=0.98, lr=1e-3, capacity=5000):
        self.q, self.target = QNet(), QNet()
        self.target.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.memory = deque(maxlen=capacity)
        self.gamma, self.updates = gamma, 0

    @torch.no_grad()
    def act(self, obs, eps):
        if random.random() < eps:
            return random.randrange(2)
        return int(self.q(torch.from_numpy(obs)).argmax())

    def collate(self, steps):
        cols = Step(*zip(*steps))
        obs = torch.from_numpy(np.stack(cols.obs))
        nxt = torch.from_numpy(np.stack(cols.nxt))
        action = torch.tensor(cols.action)
        reward = torch.from_numpy(np.array(cols.reward, dtype=np.float32))
        alive = torch.from_numpy(1 - np.array(cols.done, dtype=np.float32))
        return obs, action, reward, nxt, alive

    def learn(self, n=64):
        obs, action, reward, nxt, alive = self.collate(random.sample(self.memory, n))
        with torch.no_grad():
            goal = reward + self.gamma * alive * self.target(nxt).max(1).values
        value = self.q(obs).gather(1, action[:, None]).squeeze(1)
        loss = F.mse_loss(value, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % 100 == 0:
            self.target.load_state_dict(self.q.state_dict())


def play(env, agent, eps, remember=False):
    obs, total, over = env.reset(), 0.0, False
    while not over:
        a = agent.act(obs, eps)
        nxt, r, fell, over = env.step(a)
        if remember:
            agent.memory.append(Step(obs, a, r, nxt, fell))
            if len(agent.memory) >= 200:
                agent.learn()
        obs, total = nxt, total + r
    return total


if __name__ == "__main__":
    random.seed(0); np.random.seed(0); torch.manual_seed(0)
    agent, env, test_env = Agent(), CartPole(1), CartPole(2)
    for ep in range(60):
        play(env, agent, eps=max(0.05, 1 - ep / 40), remember=True)
        if ep % 20 == 19:
            print(ep + 1, np.mean([play(test_env, agent, 0.0) for _ in range(5)]))
