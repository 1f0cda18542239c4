import torch


class Corridors:
    """N parallel corridors of length L. Start in the middle, +1 at the right end, -1 at the left, 40 moves at most."""

    def __init__(self, n, length, gen):
        self.n, self.length, self.gen = n, length, gen
        self.pos = torch.zeros(n, dtype=torch.long)
        self.t = torch.zeros(n, dtype=torch.long)
        self._reset(torch.ones(n, dtype=torch.bool))

    def _reset(self, which):
        self.pos[which] = self.length // 2
        self.t[which] = 0

    def observe(self):
        return torch.nn.functional.one_hot(self.pos, self.length).float()

    def step(self, action):
        slip = torch.rand(self.n, generator=self.gen) < 0.1
        move = torch.where(slip, 1 - action, action) * 2 - 1
        self.pos = (self.pos + move).clamp(0, self.length - 1)
        self.t += 1
        won, lost = self.pos == self.length - 1, self.pos == 0
        done = won | lost | (self.t >= 40)
        reward = won.float() - lost.float() - 0.01
        self._reset(done)
        return self.observe(), reward, done
