"""Audio pipelines: every stage is registered by name and chained according to a recipe."""
import torch

STAGES = {}


def stage(name):
    def deco(cls):
        STAGES[name] = cls
        return cls
    return deco


@stage("stft")
class Stft:
    def __init__(self, ctx):
        self.n_fft, self.hop = ctx["n_fft"], ctx["hop"]
        self.window = torch.hann_window(self.n_fft)

    def __call__(self, wav):
        s = torch.stft(wav, self.n_fft, self.hop, window=self.window, return_complex=True)
        return s.abs().pow(2)


@stage("log")
class LogCompress:
    def __init__(self, ctx):
        self.floor = ctx["floor"]

    def __call__(self, spec):
        return (spec + self.floor).log()


@stage("cmvn")
class GlobalCmvn:
    """Global mean/variance normalisation; statistics come from the training recordings."""

    def __init__(self, ctx):
        self.ctx = ctx

    def __call__(self, spec):
        return (spec - self.ctx["mean"]) / self.ctx["std"]


@stage("freqmask")
class FreqMask:
    def __init__(self, ctx):
        self.width = ctx["mask_width"]

    def __call__(self, spec):
        start = int(torch.randint(0, spec.shape[0] - self.width, ()))
        out = spec.clone()
        out[start:start + self.width] = 0.0
        return out


RECIPES = {
    "stats": ["stft", "log"],
    "train": ["stft", "log", "cmvn", "freqmask"],
    "eval": ["stft", "cmvn"],
}


def build(recipe, ctx):
    stages = [STAGES[n](ctx) for n in RECIPES[recipe]]

    def run(wav):
        for s in stages:
            wav = s(wav)
        return wav

    return run
