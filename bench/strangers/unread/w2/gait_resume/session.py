"""Everything that has to survive a restart lives in one Session object."""
from __future__ import annotations

import os
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Position:
    epoch: int = 0
    batch: int = 0
    step: int = 0


class Session:
    def __init__(self, model: nn.Module, total_steps: int, path: str) -> None:
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, max_lr=6e-3, total_steps=total_steps)
        self.at = Position()
        self.path = path

    def save(self) -> None:
        blob = {
            "model": self.model.state_dict(), "opt": self.opt.state_dict(), "sched": self.sched.state_dict(),
            "at": vars(self.at).copy(), "torch": torch.get_rng_state(),
            "numpy": np.random.get_state(), "python": random.getstate(),
        }
        torch.save(blob, self.path + ".new")
        os.replace(self.path + ".new", self.path)

    def load(self) -> bool:
        if not os.path.exists(self.path):
            return False
        blob = torch.load(self.path, weights_only=False)
        self.model.load_state_dict(blob["model"])
        self.opt.load_state_dict(blob["opt"])
        self.sched.load_state_dict(blob["sched"])
        self.at = Position(**blob["at"])
        torch.set_rng_state(blob["torch"])
        np.random.set_state(blob["numpy"])
        random.setstate(blob["python"])
        return True
