import torch


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, img):
        for s in self.steps:
            img = s(img)
        return img


class Jitter:
    def __init__(self, strength):
        self.strength = strength

    def __call__(self, img):
        return img * (1 + self.strength * (torch.rand(()) * 2 - 1))


class Shift:
    def __init__(self, pixels):
        self.pixels = pixels

    def __call__(self, img):
        dy, dx = torch.randint(-self.pixels, self.pixels + 1, (2,)).tolist()
        return img.roll((dy, dx), (1, 2))


class Mirror:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        return img.flip(-1) if torch.rand(()) < self.p else img
