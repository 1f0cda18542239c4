import numpy as np


class PointMass:
    """1-d point that should be driven to the origin with little force."""

    def __init__(self, seed=0, horizon=40):
        self.rng = np.random.default_rng(seed)
        self.horizon = horizon

    def reset(self):
        self.pos = self.rng.uniform(-1, 1)
        self.vel = 0.0
        self.t = 0
        return self._obs()

    def _obs(self):
        return np.array([self.pos, self.vel], dtype=np.float32)

    def step(self, force):
        force = float(np.clip(force, -1, 1))
        self.vel = 0.95 * self.vel + 0.1 * force
        self.pos = float(np.clip(self.pos + self.vel, -2, 2))
        self.t += 1
        reward = -(self.pos ** 2) - 0.05 * force ** 2
        return self._obs(), reward, self.t >= self.horizon
