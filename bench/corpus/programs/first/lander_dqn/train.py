import math
import os
import random
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


@dataclass
class Args:
    seed: int = int(os.environ.get("SEED", "0"))
    total_timesteps: int = 2500
    learning_rate: float = 1e-3
    buffer_size: int = 5000
    gamma: float = 0.97
    target_network_frequency: int = 100
    batch_size: int = 64
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.5
    learning_starts: int = 200
    train_frequency: int = 2
    eval_frequency: int = 500


class Lander1D:
    """Brings a falling probe to rest at height zero by firing the engine up, down or not."""

    n_actions = 3
    obs_dim = 2

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.height = self.rng.uniform(-1.0, 1.0)
        self.speed = self.rng.uniform(-0.1, 0.1)
        self.t = 0
        return np.array([self.height, 5 * self.speed], dtype=np.float32)

    def step(self, action):
        self.speed = np.clip(self.speed + 0.03 * (action - 1) - 0.005, -0.2, 0.2)
        self.height += self.speed
        self.t += 1
        crashed = abs(self.height) > 1.5
        reward = 1.0 - min(abs(self.height), 1.0) if not crashed else -5.0
        obs = np.array([self.height, 5 * self.speed], dtype=np.float32)
        return obs, reward, crashed, self.t >= 40


class QNetwork(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(obs_dim, 64),
            nn.ReLU(),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Linear(64, n_actions),
        )

    def forward(self, x):
        return self.network(x)


class ReplayBuffer:
    def __init__(self, size):
        self.storage = deque(maxlen=size)

    def add(self, *transition):
        self.storage.append(transition)

    def sample(self, batch_size):
        batch = random.sample(self.storage, batch_size)
        obs, actions, rewards, next_obs, dones = zip(*batch, strict=True)
        return (
            torch.from_numpy(np.stack(obs)),
            torch.tensor(actions),
            torch.tensor(rewards, dtype=torch.float32),
            torch.from_numpy(np.stack(next_obs)),
            torch.tensor(dones, dtype=torch.float32),
        )


def linear_schedule(start_e, end_e, duration, t):
    slope = (end_e - start_e) / duration
    return max(slope * t + start_e, end_e)


def evaluate(q_network, episodes=10):
    env = Lander1D(seed=12345)
    returns = []
    for _ in range(episodes):
        obs, total, over = env.reset(), 0.0, False
        while not over:
            with torch.no_grad():
                action = q_network(torch.from_numpy(obs)).argmax().item()
            obs, reward, terminated, truncated = env.step(action)
            total += reward
            over = terminated or truncated
        returns.append(total)
    return np.mean(returns)


if __name__ == "__main__":
    args = Args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    env = Lander1D(args.seed)
    q_network = QNetwork(env.obs_dim, env.n_actions)
    target_network = QNetwork(env.obs_dim, env.n_actions)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = optim.Adam(q_network.parameters(), lr=args.learning_rate)
    rb = ReplayBuffer(args.buffer_size)

    obs = env.reset()
    episodic_return = 0.0
    td_loss = math.nan
    for global_step in range(1, args.total_timesteps + 1):
        epsilon = linear_schedule(
            args.start_e,
            args.end_e,
            args.exploration_fraction * args.total_timesteps,
            global_step,
        )
        if random.random() < epsilon:
            action = random.randrange(env.n_actions)
        else:
            with torch.no_grad():
                action = q_network(torch.from_numpy(obs)).argmax().item()

        next_obs, reward, terminated, truncated = env.step(action)
        rb.add(obs, action, reward, next_obs, terminated)
        episodic_return += reward
        obs = next_obs

        if terminated or truncated:
            print(f"global_step={global_step}, episodic_return={episodic_return:.2f}")
            obs, episodic_return = env.reset(), 0.0

        if global_step > args.learning_starts and global_step % args.train_frequency == 0:
            b_obs, b_actions, b_rewards, b_next_obs, b_dones = rb.sample(args.batch_size)
            with torch.no_grad():
                target_max = target_network(b_next_obs).max(dim=1).values
                td_target = b_rewards + args.gamma * target_max * (1 - b_dones)
            old_val = q_network(b_obs).gather(1, b_actions.unsqueeze(1)).squeeze(1)
            loss = F.smooth_l1_loss(old_val, td_target)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            td_loss = loss.item()

        if global_step % args.target_network_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())

        if global_step % args.eval_frequency == 0:
            print(
                f"eval at {global_step}: mean return {evaluate(q_network):.3f}, "
                f"td_loss {td_loss:.4f}, epsilon {epsilon:.3f}"
            )
