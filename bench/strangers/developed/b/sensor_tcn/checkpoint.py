import os

import torch


class Checkpointer:
    """Keeps named stateful objects and writes them together. Writing is atomic (tmp + rename)."""

    def __init__(self, path):
        self.path = path
        self.parts = {}

    def track(self, **parts):
        self.parts.update(parts)
        return self

    def save(self, **counters):
        blob = {name: part.state_dict() for name, part in self.parts.items()}
        blob["counters"] = counters
        tmp = f"{self.path}.tmp"
        torch.save(blob, tmp)
        os.replace(tmp, self.path)

    def restore(self):
        if not os.path.exists(self.path):
            return {}
        blob = torch.load(self.path, map_location="cpu", weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(blob[name])
        return blob["counters"]
