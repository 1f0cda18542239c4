import numpy as np


class PatchAugmenter:
    """Random flips, brightness and sensor noise. Keeps its own random state so that runs are repeatable."""

    def __init__(self, seed, noise=0.08, gain=0.3):
        self.rng = np.random.RandomState(seed)
        self.noise, self.gain = noise, gain

    def __call__(self, patch):
        r = self.rng
        if r.rand() < 0.5:
            patch = patch[:, ::-1]
        if r.rand() < 0.5:
            patch = patch[::-1]
        patch = patch * (1 + r.uniform(-self.gain, self.gain))
        return patch + r.normal(0, self.noise, patch.shape)
