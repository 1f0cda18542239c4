import numpy as np


class WindyGrid:
    """5x5 grid, start at a random cell, goal in the corner, sideways wind. Vectorised over `n` copies."""
    MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])

    def __init__(self, n, seed, size=5, limit=20, wind=0.15):
        self.n, self.size, self.limit, self.wind = n, size, limit, wind
        self.rng = np.random.default_rng(seed)
        self.pos = self.rng.integers(0, size, (n, 2))
        self.t = np.zeros(n, dtype=int)

    def observe(self):
        one = np.zeros((self.n, self.size * self.size), dtype=np.float32)
        one[np.arange(self.n), self.pos[:, 0] * self.size + self.pos[:, 1]] = 1
        return one

    def step(self, action):
        push = self.rng.random(self.n) < self.wind
        delta = self.MOVES[action] + np.stack([np.zeros(self.n, int), push.astype(int)], 1)
        self.pos = np.clip(self.pos + delta, 0, self.size - 1)
        self.t += 1
        goal = (self.pos == self.size - 1).all(1)
        late = self.t >= self.limit
        reward = np.where(goal, 1.0, -0.02).astype(np.float32)
        final_obs = self.observe()
        done = goal | late
        self.pos[done] = self.rng.integers(0, self.size, (done.sum(), 2))
        self.t[done] = 0
        return self.observe(), reward, goal, late & ~goal, final_obs
