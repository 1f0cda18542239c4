import os
import random

import numpy as np
import torch


class TrainState:
    """Everything a run needs to go on: anything with a state_dict, plus counters and random states."""

    def __init__(self, **objects):
        self.objects = objects
        self.counters = {"epoch": 0, "step": 0, "best": float("inf")}

    def save(self, path):
        blob = {k: o.state_dict() for k, o in self.objects.items()}
        blob["counters"] = self.counters
        blob["rng"] = {"py": random.getstate(), "np": np.random.get_state(), "torch": torch.get_rng_state()}
        tmp = f"{path}.tmp"
        torch.save(blob, tmp)
        os.replace(tmp, path)

    def load(self, path):
        # our own file, it holds python and numpy states beside tensors
        blob = torch.load(path, weights_only=False)
        for k, o in self.objects.items():
            o.load_state_dict(blob[k])
        self.counters.update(blob["counters"])
        random.setstate(blob["rng"]["py"])
        np.random.set_state(blob["rng"]["np"])
        torch.set_rng_state(blob["rng"]["torch"])
