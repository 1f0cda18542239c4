from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import torch


class Stateful(Protocol):
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> Any: ...


class Checkpointer:
    """Keeps a registry of stateful objects and writes/reads them together."""

    def __init__(self, path: Path):
        self.path, self._objects = path, {}

    def register(self, **objects: Stateful):
        self._objects.update(objects)

    def save(self, **scalars):
        blob = {k: o.state_dict() for k, o in self._objects.items()} | {"scalars": scalars}
        tmp = self.path.with_suffix(".tmp")
        torch.save(blob, tmp)
        os.replace(tmp, self.path)

    def load(self) -> dict[str, Any]:
        if not self.path.exists():
            return {}
        blob = torch.load(self.path, map_location="cpu", weights_only=True)
        for name, obj in self._objects.items():
            obj.load_state_dict(blob[name])
        return blob["scalars"]


class Engine:
    def __init__(self, net, loss_fn, train_loader, val_loader, *, lr, epochs, folder: Path):
        self.net, self.loss_fn = net, loss_fn
        self.train_loader, self.val_loader, self.epochs = train_loader, val_loader, epochs
        self.optim = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.01)
        self.ckpt = Checkpointer(folder / "last.pt")
        self.ckpt.register(net=net, optim=self.optim)
        steps = epochs * len(train_loader)
        self.warmup = torch.optim.lr_scheduler.LambdaLR(
            self.optim, lambda s: min(1.0, (s + 1) / (0.1 * steps)) * max(0.0, 1 - s / steps))
        self.epoch = 0

    def resume(self):
        self.epoch = self.ckpt.load().get("epoch", 0)
        if self.epoch:
            print(f"resumed at epoch {self.epoch}")

    def run(self, stop_after: int | None = None):
        last = min(self.epochs, stop_after or self.epochs)
        while self.epoch < last:
            torch.manual_seed(1000 + self.epoch)
            loss = self._train_epoch()
            val = self._validate()
            self.epoch += 1
            print(f"epoch {self.epoch} lr {self.warmup.get_last_lr()[0]:.5f} loss {loss:.4f} val {val:.4f}")
            self.ckpt.save(epoch=self.epoch)

    def _train_epoch(self):
        self.net.train()
        total = n = 0
        for x, y in self.train_loader:
            self.optim.zero_grad()
            loss = self.loss_fn(self.net(x), y)
            loss.backward()
            self.optim.step()
            self.warmup.step()
            total, n = total + loss.item() * len(x), n + len(x)
        return total / n

    @torch.no_grad()
    def _validate(self):
        self.net.eval()
        total = n = 0
        for x, y in self.val_loader:
            total, n = total + self.loss_fn(self.net(x), y).item() * len(x), n + len(x)
        return total / n
