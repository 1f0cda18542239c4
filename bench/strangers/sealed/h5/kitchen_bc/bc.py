"""Behaviour cloning of a joystick-driven arm with a tanh-squashed Gaussian policy."""
import numpy as np
import torch
import torch.nn as nn


class TanhGaussian:
    """Distribution of tanh(u), u ~ N(mean, std)."""

    def __init__(self, mean, log_std):
        self.base = torch.distributions.Normal(mean, log_std.exp())

    def log_prob(self, action):
        u = 0.5 * (torch.log1p(action) - torch.log1p(-action))
        correction = 2 * (np.log(2.0) - u - nn.functional.softplus(-2 * u))
        return (self.base.log_prob(u) - correction).sum(-1)

    def mode(self):
        return torch.tanh(self.base.mean)


class Policy(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, act_dim)
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.5))

    def forward(self, obs):
        return TanhGaussian(self.mu(self.trunk(obs)), self.log_std.clamp(-4, 1))


class Arm:
    """Two joints, the operator drives towards a goal; the joystick saturates at its end stops."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.q = self.rng.uniform(-1, 1, 2)
        self.goal = self.rng.uniform(-1, 1, 2)
        return self.obs()

    def obs(self):
        return np.concatenate([self.q, self.goal])

    def step(self, action):
        self.q = self.q + 0.2 * action
        return self.obs(), np.linalg.norm(self.goal - self.q)

    def operator(self):
        push = 1.2 * (self.goal - self.q) + 0.05 * self.rng.standard_normal(2)
        return np.clip(push, -1.0, 1.0)


def record(episodes, length=15, seed=0):
    env, obs, act = Arm(seed), [], []
    for _ in range(episodes):
        o = env.reset()
        for _ in range(length):
            a = env.operator()
            obs.append(o)
            act.append(a)
            o, _ = env.step(a)
    return torch.tensor(np.array(obs), dtype=torch.float32), torch.tensor(np.array(act), dtype=torch.float32)


def rollout(policy, episodes=30):
    env, final = Arm(99), []
    for _ in range(episodes):
        o = env.reset()
        for _ in range(15):
            with torch.no_grad():
                a = policy(torch.tensor(o, dtype=torch.float32)).mode().numpy()
            o, dist = env.step(a)
        final.append(dist)
    return float(np.mean(final))


if __name__ == "__main__":
    torch.manual_seed(0)
    obs, act = record(100)
    policy = Policy(4, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
    for epoch in range(6):
        for idx in torch.randperm(len(obs)).split(50):
            nll = -policy(obs[idx]).log_prob(act[idx]).mean()
            optimizer.zero_grad()
            nll.backward()
            optimizer.step()
        print(f"epoch {epoch} nll {nll.item():.3f} final distance {rollout(policy):.3f}")
