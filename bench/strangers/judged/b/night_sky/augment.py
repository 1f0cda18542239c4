"""Augmentations for star-field cut-outs, all numpy."""
import numpy as np

REGISTRY = {}


def register(fn):
    REGISTRY[fn.__name__] = fn
    return fn


@register
def rotate(img, rng):
    return np.rot90(img, rng.integers(4))


@register
def mirror(img, rng):
    return img[:, ::-1] if rng.random() < 0.5 else img


@register
def sensor_noise(img, rng):
    return img + rng.normal(0.0, 0.05, img.shape)


@register
def hot_pixels(img, rng):
    out = img.copy()
    out[rng.integers(0, img.shape[0], 2), rng.integers(0, img.shape[1], 2)] = 0.6
    return out


class Pipeline:
    def __init__(self, names, seed):
        self.steps = [REGISTRY[n] for n in names]
        self.rng = np.random.default_rng(seed)

    def __call__(self, img):
        for step in self.steps:
            img = step(img, self.rng)
        return np.ascontiguousarray(img, dtype=np.float32)
