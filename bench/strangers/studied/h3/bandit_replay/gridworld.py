import numpy as np


class Corridor:
    """Walk right through a windy corridor of 8 cells."""

    N = 8

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.cell, self.t = 0, 0
        return self._see()

    def _see(self):
        v = np.zeros(self.N + 1, dtype=np.float32)
        v[self.cell] = 1.0
        v[-1] = self.t / 30
        return v

    def step(self, action):
        move = 1 if action == 1 else -1
        if self.rng.random() < 0.1:
            move = -move
        self.cell = int(np.clip(self.cell + move, 0, self.N - 1))
        self.t += 1
        won = self.cell == self.N - 1
        return self._see(), (1.0 if won else -0.02), won or self.t >= 30
