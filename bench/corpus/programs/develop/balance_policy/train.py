"""REINFORCE with a value baseline on a small pole-balancing task."""

import math
import os

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

SEED = int(os.environ.get("SEED", "0"))
GAMMA = 0.97
LR = 1e-2
ENTROPY_COEF = 0.01
ITERATIONS = 45
ENVS = 24
HORIZON = 60


class Poles:
    """Many independent poles, simulated side by side."""

    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.n = n

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, (self.n, 4))
        self.alive = np.ones(self.n, dtype=bool)
        return self.state.astype(np.float32)

    def step(self, action):
        x, v, a, w = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        temp = (force + 0.05 * w**2 * np.sin(a)) / 1.1
        acc_a = (9.8 * np.sin(a) - np.cos(a) * temp) / (
            0.5 * (4.0 / 3.0 - 0.1 * np.cos(a) ** 2 / 1.1)
        )
        acc_x = temp - 0.05 * acc_a * np.cos(a) / 1.1
        self.state = np.stack([x + 0.03 * v, v + 0.03 * acc_x, a + 0.03 * w, w + 0.03 * acc_a], 1)
        self.alive &= (np.abs(self.state[:, 2]) < 12 * math.pi / 180) & (
            np.abs(self.state[:, 0]) < 2.4
        )
        return self.state.astype(np.float32), self.alive.astype(np.float32)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.pi = nn.Linear(32, 2)
        self.value = nn.Linear(32, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.value(h).squeeze(-1)


def rollout(env, policy):
    obs = torch.from_numpy(env.reset())
    observations, actions, rewards = [], [], []
    for _ in range(HORIZON):
        with torch.no_grad():
            logits, _ = policy(obs * 5.0)
        action = Categorical(logits=logits).sample()
        next_obs, alive = env.step(action.numpy())
        observations.append(obs * 5.0)
        actions.append(action)
        rewards.append(torch.from_numpy(alive))
        obs = torch.from_numpy(next_obs)
    return torch.stack(observations), torch.stack(actions), torch.stack(rewards)


def main():
    torch.manual_seed(SEED)
    env = Poles(ENVS, SEED)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=LR)
    history = []
    for it in range(ITERATIONS):
        obs, actions, rewards = rollout(env, policy)
        returns = torch.zeros_like(rewards)
        future = torch.zeros(ENVS)
        for t in reversed(range(HORIZON)):
            future = rewards[t] + GAMMA * future * rewards[t]
            returns[t] = future
        mask = torch.cat([torch.ones(1, ENVS), rewards[:-1]])
        logits, values = policy(obs)
        dist = Categorical(logits=logits)
        advantage = returns - values.detach() * 10.0
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy_loss = -(dist.log_prob(actions) * advantage * mask).sum() / mask.sum()
        value_loss = ((values - returns / 10.0).pow(2) * mask).sum() / mask.sum()
        entropy = (dist.entropy() * mask).sum() / mask.sum()
        loss = policy_loss + 0.5 * value_loss - ENTROPY_COEF * entropy
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        history.append(rewards.sum(0).mean().item())
        if it % 5 == 4:
            print(
                f"iter={it + 1} mean_return={np.mean(history[-5:]):.2f} "
                f"policy_loss={policy_loss.item():.4f} value_loss={value_loss.item():.4f} "
                f"entropy={entropy.item():.4f}"
            )
    print(f"final return {np.mean(history[-10:]):.2f}")


if __name__ == "__main__":
    main()
