import numpy as np


class Pendulum:
    """Same dynamics as the gym task, without the dependency."""
    obs_dim, act_dim, act_limit = 3, 1, 2.0

    def __init__(self, seed=0, horizon=200):
        self.rng = np.random.default_rng(seed)
        self.horizon = horizon

    def _obs(self):
        return np.array([np.cos(self.th), np.sin(self.th), self.thdot], dtype=np.float32)

    def reset(self):
        self.th = self.rng.uniform(-np.pi, np.pi)
        self.thdot = self.rng.uniform(-1, 1)
        self.t = 0
        return self._obs()

    def step(self, a):
        u = float(np.clip(a, -self.act_limit, self.act_limit)[0])
        ang = ((self.th + np.pi) % (2 * np.pi)) - np.pi
        cost = ang ** 2 + 0.1 * self.thdot ** 2 + 0.001 * u ** 2
        self.thdot = np.clip(self.thdot + (15.0 * np.sin(self.th) + 3.0 * u) * 0.05, -8, 8)
        self.th += self.thdot * 0.05
        self.t += 1
        return self._obs(), -cost, self.t >= self.horizon
