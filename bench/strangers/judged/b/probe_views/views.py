import torch


class TwoViews:
    """Two independent random crops/jitters of every image of a batch (N,1,8,8)."""

    def __init__(self, pad=1, noise=0.1, seed=0):
        self.pad, self.noise = pad, noise
        self.gen = torch.Generator().manual_seed(seed)

    def one(self, x):
        n, _, h, w = x.shape
        p = torch.nn.functional.pad(x, [self.pad] * 4)
        off = torch.randint(0, 2 * self.pad + 1, (2, n), generator=self.gen)
        r = torch.arange(h) + off[0][:, None]
        c = torch.arange(w) + off[1][:, None]
        x = p[torch.arange(n)[:, None, None], 0, r[:, :, None], c[:, None, :]][:, None]
        gain = 0.7 + 0.6 * torch.rand(n, 1, 1, 1, generator=self.gen)
        return x * gain + self.noise * torch.randn(x.shape, generator=self.gen)

    def __call__(self, x):
        return self.one(x), self.one(x)
