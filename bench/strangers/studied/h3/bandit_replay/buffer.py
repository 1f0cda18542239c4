from collections import deque, namedtuple

import numpy as np

Moment = namedtuple("Moment", "obs action reward next_obs done value")


class SurpriseReplay:
    """Replay memory that prefers moments whose value estimate was far off."""

    def __init__(self, capacity, seed=0):
        self.items = deque(maxlen=capacity)
        self.weight = deque(maxlen=capacity)
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.items)

    def push(self, moment):
        self.items.append(moment)
        self.weight.append(abs(moment.reward - float(moment.value)) + 0.1)

    def draw(self, n):
        p = np.asarray(self.weight)
        picks = self.rng.choice(len(self.items), size=n, p=p / p.sum())
        return [self.items[i] for i in picks]
