"""REINFORCE with a learned baseline on a small grid with pits."""

import argparse
import os
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class GridWorld:
    """A 5x5 grid: start anywhere, reach the goal in the far corner, stay out of the pits."""

    MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))

    def __init__(self, size=5, max_steps=30):
        self.size = size
        self.max_steps = max_steps
        self.goal = (size - 1, size - 1)
        self.pits = {(1, 3), (3, 1)}
        self.free = [
            (row, col)
            for row in range(size)
            for col in range(size)
            if (row, col) not in self.pits and (row, col) != self.goal
        ]

    def reset(self):
        self.pos = random.choice(self.free)
        self.steps = 0
        return self._observe()

    def step(self, action):
        dy, dx = self.MOVES[action]
        row = min(max(self.pos[0] + dy, 0), self.size - 1)
        col = min(max(self.pos[1] + dx, 0), self.size - 1)
        self.pos = (row, col)
        self.steps += 1
        if self.pos == self.goal:
            return self._observe(), 1.0, True
        if self.pos in self.pits:
            return self._observe(), -1.0, True
        return self._observe(), -0.02, self.steps >= self.max_steps

    def _observe(self):
        obs = np.zeros(self.size * self.size, dtype=np.float32)
        obs[self.pos[0] * self.size + self.pos[1]] = 1.0
        return obs


class Policy(nn.Module):
    def __init__(self, n_obs, n_actions, hidden=32):
        super().__init__()
        self.body = nn.Linear(n_obs, hidden)
        self.action_head = nn.Linear(hidden, n_actions)
        self.value_head = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = torch.tanh(self.body(obs))
        return self.action_head(h), self.value_head(h).squeeze(-1)


def run_episode(env, policy):
    obs, done = env.reset(), False
    log_probs, values, entropies, rewards = [], [], [], []
    while not done:
        logits, value = policy(torch.from_numpy(obs))
        dist = Categorical(logits=logits)
        action = dist.sample()
        obs, reward, done = env.step(action.item())
        log_probs.append(dist.log_prob(action))
        values.append(value)
        entropies.append(dist.entropy())
        rewards.append(reward)
    return torch.stack(log_probs), torch.stack(values), torch.stack(entropies), rewards


def discounted_returns(rewards, gamma):
    returns, running = [], 0.0
    for r in reversed(rewards):
        running = r + gamma * running
        returns.insert(0, running)
    return torch.tensor(returns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--entropy-coef", type=float, default=0.01)
    parser.add_argument("--log-interval", type=int, default=25)
    args = parser.parse_args()

    seed = int(os.environ.get("SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    env = GridWorld()
    policy = Policy(env.size**2, len(env.MOVES))
    optimizer = torch.optim.Adam(policy.parameters(), lr=args.lr)
    recent = deque(maxlen=50)

    for episode in range(1, args.episodes + 1):
        log_probs, values, entropies, rewards = run_episode(env, policy)
        returns = discounted_returns(rewards, args.gamma)

        advantages = returns - values.detach()
        policy_loss = -(log_probs * advantages).sum()
        value_loss = F.smooth_l1_loss(values, returns)
        loss = policy_loss + 0.5 * value_loss - args.entropy_coef * entropies.sum()

        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()

        recent.append(sum(rewards))
        if episode % args.log_interval == 0:
            print(
                f"Episode {episode}\tLength: {len(rewards):3d}\tLoss: {loss.item():8.3f}\t"
                f"Last reward: {recent[-1]:.2f}\tAverage reward: {np.mean(recent):.3f}"
            )


if __name__ == "__main__":
    main()
