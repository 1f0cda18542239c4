import logging
import time

import torch
import torch.nn as nn

log = logging.getLogger("scenes")


class Profiled:
    """Adds a wall clock to anything with a forward method."""

    def __init__(self, *args, tag=None, **kwargs):
        self.tag = tag or type(self).__name__
        self.clock = 0.0
        self.calls = 0

    def timed(self, fn, *args):
        start = time.perf_counter()
        out = fn(*args)
        self.clock += time.perf_counter() - start
        self.calls += 1
        return out

    def report(self):
        log.info("%s: %.2f ms per call", self.tag, 1e3 * self.clock / max(self.calls, 1))


class SceneNet(Profiled, nn.Module):
    def __init__(self, n_mels, n_scenes, channels=24):
        super().__init__(tag="scene-net")
        self.features = nn.Sequential(
            nn.Conv1d(n_mels, channels, 5, padding=2), nn.BatchNorm1d(channels), nn.ReLU(),
            nn.Conv1d(channels, channels, 5, padding=2), nn.BatchNorm1d(channels), nn.ReLU(),
        )
        self.head = nn.Linear(2 * channels, n_scenes)

    def forward(self, spec):
        h = self.timed(self.features, spec)
        return self.head(torch.cat([h.mean(-1), h.amax(-1)], dim=-1))
