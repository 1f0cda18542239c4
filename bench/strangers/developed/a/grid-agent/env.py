import torch


class GridBatch:
    """`n` independent square grids. Reach the goal corner; every step costs a little."""

    MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def __init__(self, n=16, size=5, horizon=30, seed=0):
        self.n, self.size, self.horizon = n, size, horizon
        self.gen = torch.Generator().manual_seed(seed)
        self.pos = torch.zeros(n, 2, dtype=torch.long)
        self.age = torch.zeros(n, dtype=torch.long)
        self.reset(torch.ones(n, dtype=torch.bool))

    def reset(self, which):
        k = int(which.sum())
        self.pos[which] = torch.randint(0, self.size - 1, (k, 2), generator=self.gen)
        self.age[which] = 0

    def observe(self):
        return self.pos.float() / (self.size - 1) * 2 - 1

    def step(self, action):
        self.pos = (self.pos + self.MOVES[action]).clamp(0, self.size - 1)
        self.age += 1
        goal = (self.pos == self.size - 1).all(1)
        reward = torch.where(goal, 1.0, -0.02)
        done = goal | (self.age >= self.horizon)
        self.reset(done)
        return self.observe(), reward, done.float()
