"""Inverse model of a servo joint: (state, next state) -> torque.

The job runs on spot instances.  Session.persist() writes everything that has a state to disk
and Session.recover() brings it back on the next instance.
"""
import logging
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("servo")


def record_trajectories(n: int, seed: int) -> TensorDataset:
    gen = torch.Generator().manual_seed(seed)
    pos = torch.rand(n, 1, generator=gen) * 6 - 3
    vel = torch.randn(n, 1, generator=gen)
    torque = torch.randn(n, 1, generator=gen)
    acc = torque - 0.4 * vel - 1.5 * torch.sin(pos)
    nxt_vel = vel + 0.3 * acc
    nxt_pos = pos + 0.3 * nxt_vel
    return TensorDataset(torch.cat([pos, vel, nxt_pos, nxt_vel], dim=1), torque)


class WeightAverage:
    """Exponential moving average of the parameters, used for evaluation and export."""

    def __init__(self, module: nn.Module, decay: float = 0.995):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in module.named_parameters()}

    def track(self, module: nn.Module) -> None:
        for n, p in module.named_parameters():
            self.shadow[n].lerp_(p.detach(), 1 - self.decay)

    def predict(self, module: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, self.shadow, (x,))


class Clock:
    def __init__(self):
        self.epoch = 0

    def state_dict(self):
        return {"epoch": self.epoch}

    def load_state_dict(self, state):
        self.epoch = state["epoch"]


class Session:
    def __init__(self, store: Path, total_epochs: int = 12):
        torch.manual_seed(3)
        self.store = store
        self.total_epochs = total_epochs
        self.net = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, total_epochs)
        self.average = WeightAverage(self.net)
        self.clock = Clock()
        self.train_set = record_trajectories(2000, seed=1)
        self.test_set = record_trajectories(400, seed=2)

    def _members(self) -> dict:
        return {k: v for k, v in vars(self).items() if hasattr(v, "state_dict")}

    def persist(self) -> None:
        self.store.parent.mkdir(exist_ok=True)
        torch.save({k: v.state_dict() for k, v in self._members().items()}, self.store)

    def recover(self) -> None:
        if not self.store.exists():
            return
        blob = torch.load(self.store)
        for name, member in self._members().items():
            member.load_state_dict(blob[name])
        log.info("recovered at epoch %d", self.clock.epoch)

    def run(self, budget: int) -> bool:
        self.recover()
        for _ in range(budget):
            if self.clock.epoch >= self.total_epochs:
                break
            order = torch.Generator().manual_seed(self.clock.epoch)
            for x, y in DataLoader(self.train_set, 50, shuffle=True, generator=order):
                loss = nn.functional.mse_loss(self.net(x), y)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()
                self.average.track(self.net)
            self.schedule.step()
            self.clock.epoch += 1
            self.report(loss.item())
            self.persist()
        return self.clock.epoch >= self.total_epochs

    @torch.no_grad()
    def report(self, last_loss: float) -> None:
        x, y = self.test_set.tensors
        err = nn.functional.mse_loss(self.average.predict(self.net, x), y).item()
        log.info("epoch %2d  last batch %.4f  averaged model on test %.4f", self.clock.epoch, last_loss, err)


if __name__ == "__main__":
    store = Path("state/session.pt")
    finished = False
    while not finished:
        finished = Session(store).run(budget=5)
    store.unlink()
