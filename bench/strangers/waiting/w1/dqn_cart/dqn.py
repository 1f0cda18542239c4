"""Double DQN on a hand-written corridor task with a slippery floor."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

LENGTH, GAMMA, BATCH = 8, 0.95, 64


class Corridor:
    def reset(self):
        self.x, self.t = LENGTH // 2, 0
        return self._obs()

    def _obs(self):
        v = np.zeros(LENGTH, np.float32)
        v[self.x] = 1.0
        return v

    def step(self, a):
        d = 1 if a == 1 else -1
        if random.random() < 0.1:
            d = -d
        self.x = min(max(self.x + d, 0), LENGTH - 1)
        self.t += 1
        if self.x == LENGTH - 1:
            return self._obs(), 1.0, True
        if self.x == 0:
            return self._obs(), 0.1, True
        return self._obs(), 0.0, self.t >= 50


def qnet():
    return nn.Sequential(nn.Linear(LENGTH, 64), nn.ReLU(), nn.Linear(64, 2))


class Agent:
    def __init__(self, lr=2e-3):
        self.q, self.q_target = qnet(), qnet()
        self.q_target.load_state_dict(self.q.state_dict())
        self.q_target.requires_grad_(False)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.memory = deque(maxlen=5000)

    @torch.no_grad()
    def act(self, s, eps):
        if random.random() < eps:
            return random.randrange(2)
        return self.q(torch.from_numpy(s)).argmax().item()

    def learn(self):
        if len(self.memory) < 200:
            return None
        s, a, r, s2, d = zip(*random.sample(self.memory, BATCH))
        s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
        a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d, dtype=torch.float32)
        with torch.no_grad():
            best = self.q(s2).argmax(1, keepdim=True)
            target = r + GAMMA * (1 - d) * self.q_target(s2).gather(1, best).squeeze(1)
        value = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, target)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.q.parameters(), 1.0)
        self.opt.step()
        return loss.item()

    def sync(self):
        self.q_target.load_state_dict(self.q.state_dict())


def main(episodes=250):
    random.seed(0), torch.manual_seed(0)
    env, agent, scores, steps = Corridor(), Agent(), [], 0
    for ep in range(1, episodes + 1):
        s, done, total = env.reset(), False, 0.0
        eps = max(0.05, 1.0 - ep / 150)
        while not done:
            a = agent.act(s, eps)
            s2, r, done = env.step(a)
            terminal = done and env.t < 50
            agent.memory.append((s, a, r, s2, terminal))
            s, total, steps = s2, total + r, steps + 1
            agent.learn()
            if steps % 100 == 0:
                agent.sync()
        scores.append(total)
        if ep % 50 == 0:
            print(f"episode {ep} eps {eps:.2f} mean return {np.mean(scores[-50:]):.3f}")


if __name__ == "__main__":
    main()
