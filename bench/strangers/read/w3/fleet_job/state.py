from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch


class Stateful(Protocol):
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> Any: ...


class RandomState:
    def __init__(self, *generators: torch.Generator) -> None:
        self.generators = generators

    def state_dict(self) -> dict[str, Any]:
        state = {"py": random.getstate(), "np": np.random.get_state(), "torch": torch.get_rng_state()}
        state["own"] = [g.get_state() for g in self.generators]
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state_all()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        random.setstate(state["py"])
        np.random.set_state(state["np"])
        torch.set_rng_state(state["torch"])
        for g, s in zip(self.generators, state["own"], strict=True):
            g.set_state(s)
        if "cuda" in state:
            torch.cuda.set_rng_state_all(state["cuda"])


class Progress:
    def __init__(self) -> None:
        self.epoch = 0
        self.history: list[float] = []

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


class Checkpointer:
    def __init__(self, path: Path, **parts: Stateful) -> None:
        self.path, self.parts = path, parts

    def save(self) -> None:
        tmp = self.path.with_suffix(".tmp")
        torch.save({name: part.state_dict() for name, part in self.parts.items()}, tmp)
        os.replace(tmp, self.path)

    def resume(self) -> bool:
        if not self.path.exists():
            return False
        blob = torch.load(self.path, map_location="cpu", weights_only=False)
        for name, part in self.parts.items():
            part.load_state_dict(blob[name])
        return True
