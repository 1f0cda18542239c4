import numpy as np


class Lake:
    """5x5 grid with holes; observation is a one-hot cell."""

    HOLES = {(1, 1), (1, 3), (3, 0), (3, 3)}
    MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    n_obs, n_act = 25, 4

    def reset(self):
        self.r = self.c = self.t = 0
        return self._obs()

    def _obs(self):
        o = np.zeros(25, dtype=np.float32)
        o[self.r * 5 + self.c] = 1
        return o

    def step(self, a):
        dr, dc = self.MOVES[a]
        self.r = min(4, max(0, self.r + dr))
        self.c = min(4, max(0, self.c + dc))
        self.t += 1
        if (self.r, self.c) in self.HOLES:
            return self._obs(), -1.0, True
        if (self.r, self.c) == (4, 4):
            return self._obs(), 1.0, True
        return self._obs(), -0.01, self.t >= 40
