import random


class Corridor:
    """Walk to the far end before the battery is empty; a slippery floor moves you back at times."""

    def __init__(self, length=8, battery=30, seed=0):
        self.length, self.battery = length, battery
        self.rnd = random.Random(seed)

    def _obs(self):
        return (self.place / self.length, self.left / self.battery, float(self.door))

    def reset(self):
        self.place, self.left = 0, self.battery
        self.door = self.rnd.random() < 0.5
        return self._obs()

    def step(self, action):
        right_way = 1 if self.door else 0
        self.place += 1 if action == right_way else -1
        self.place = max(self.place, 0)
        if self.rnd.random() < 0.1:
            self.place = max(self.place - 1, 0)
        self.left -= 1
        reached = self.place >= self.length
        done = reached or self.left == 0
        return self._obs(), (1.0 if reached else -0.02), done
