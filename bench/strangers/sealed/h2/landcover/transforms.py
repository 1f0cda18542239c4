import torch


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, sample):
        for step in self.steps:
            sample = step(sample)
        return sample


class RandomFlip:
    def __call__(self, s):
        for dim in (-1, -2):
            if torch.rand(()) < 0.5:
                s = {k: v.flip(dim) for k, v in s.items()}
        return s


class Normalise:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, s):
        return {**s, "image": (s["image"] - self.mean) / self.std}


class ReduceZeroLabel:
    """Shift the classes to 0..K-1; pixels without annotation wrap round to 255."""

    def __call__(self, s):
        return {**s, "mask": s["mask"] - 1}


class ToLong:
    def __call__(self, s):
        return {**s, "mask": s["mask"].long()}
