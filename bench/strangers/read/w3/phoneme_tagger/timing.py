import time
from collections import defaultdict

import torch


class Stopwatch:
    def __init__(self, device, report=False):
        self.device, self.report = device, report
        self.seconds = defaultdict(float)
        self._name = None

    def __call__(self, name):
        self._name = name
        return self

    def __enter__(self):
        self._t0 = time.perf_counter()
        return self

    def __exit__(self, *exc):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.seconds[self._name] += time.perf_counter() - self._t0
        return False

    def summary(self):
        if self.report:
            for name, s in self.seconds.items():
                print(f"  {name:10s} {s:8.3f}s")
