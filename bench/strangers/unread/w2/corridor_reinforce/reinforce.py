"""REINFORCE with a moving baseline on a little windy corridor (no gym needed)."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

SEED = 21
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

GAMMA = 0.98
MAX_GRAD = 0.5
EPISODES_PER_UPDATE = 8


class WindyCorridor:
    """Walk right to the goal; wind pushes back. Falling off the left end costs a lot."""

    def __init__(self, length=9):
        self.length = length

    def reset(self):
        self.pos, self.t = 2, 0
        return self._obs()

    def _obs(self):
        o = np.zeros(self.length + 1, dtype=np.float32)
        o[self.pos] = 1.0
        o[-1] = self.t / 40
        return o

    def step(self, a):
        self.t += 1
        self.pos += 1 if a == 1 else -1
        if np.random.rand() < 0.15:
            self.pos -= 1
        if self.pos <= 0:
            self.pos = 0
            return self._obs(), -20.0, True
        if self.pos >= self.length - 1:
            self.pos = self.length - 1
            return self._obs(), 10.0, True
        return self._obs(), -0.1, self.t >= 40


class Policy(nn.Module):
    def __init__(self, d_in, n_actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 32), nn.Tanh(), nn.Linear(32, n_actions))

    def forward(self, obs):
        return Categorical(logits=self.net(obs))


def rollout(env, policy):
    obs, done = env.reset(), False
    logps, rewards = [], []
    while not done:
        dist = policy(torch.from_numpy(obs))
        action = dist.sample()
        logps.append(dist.log_prob(action))
        obs, r, done = env.step(action.item())
        rewards.append(r)
    ret, returns = 0.0, []
    for r in reversed(rewards):
        ret = r + GAMMA * ret
        returns.append(ret)
    return torch.stack(logps), torch.tensor(returns[::-1]), sum(rewards)


def limit_gradients(optimizer, args, kwargs):
    for group in optimizer.param_groups:
        nn.utils.clip_grad_norm_(group["params"], MAX_GRAD)


env = WindyCorridor()
policy = Policy(env.length + 1, 2)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.02, momentum=0.9)
optimizer.register_step_post_hook(limit_gradients)

baseline = 0.0
scores = deque(maxlen=50)
for update in range(40):
    losses = []
    for _ in range(EPISODES_PER_UPDATE):
        logps, returns, score = rollout(env, policy)
        losses.append(-(logps * (returns - baseline)).sum())
        baseline = 0.95 * baseline + 0.05 * returns[0].item()
        scores.append(score)
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 5 == 0:
        print(f"update {update:3d} loss {loss.item():8.3f} score {np.mean(scores):7.2f}")
