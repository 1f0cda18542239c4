"""Minimal cart-pole, no gym needed."""
import math

import numpy as np


class CartPole:
    obs_dim, n_actions = 4, 2

    def __init__(self, seed, limit=120):
        self.rng = np.random.default_rng(seed)
        self.limit = limit

    def reset(self):
        self.s = self.rng.uniform(-0.05, 0.05, 4)
        self.t = 0
        return self.s.copy()

    def step(self, action):
        x, v, th, w = self.s
        f = 10.0 if action == 1 else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (f + 0.05 * w * w * s) / 1.1
        acc_th = (9.8 * s - c * tmp) / (0.5 * (4.0 / 3.0 - 0.1 * c * c / 1.1))
        acc_x = tmp - 0.05 * acc_th * c / 1.1
        self.s = np.array([x + 0.02 * v, v + 0.02 * acc_x, th + 0.02 * w, w + 0.02 * acc_th])
        self.t += 1
        failed = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.2095
        return self.s.copy(), 1.0, failed or self.t >= self.limit
