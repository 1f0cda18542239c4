import logging
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("forecast")


@dataclass
class JobSettings:
    sensors: int = 10
    history: int = 12
    hidden: int = 24
    rank: int = 4
    batch: int = 64
    epochs: int = 4
    lr: float = 4e-3


class SensorSeries:
    """Simulated road sensors on a ring: each one follows its neighbour with a delay."""

    def __init__(self, cfg: JobSettings, length=900, seed=5):
        rng = np.random.default_rng(seed)
        v = np.zeros((length, cfg.sensors), dtype=np.float32)
        v[0] = rng.normal(size=cfg.sensors)
        for t in range(1, length):
            v[t] = 0.6 * v[t - 1] + 0.35 * np.roll(v[t - 1], 1) + 0.3 * rng.normal(size=cfg.sensors)
        windows = np.stack([v[i:i + cfg.history] for i in range(length - cfg.history)])
        target = v[cfg.history:]
        cut = int(0.8 * len(target))
        self.train = TensorDataset(torch.from_numpy(windows[:cut]), torch.from_numpy(target[:cut]))
        self.valid = TensorDataset(torch.from_numpy(windows[cut:]), torch.from_numpy(target[cut:]))


class AdaptiveGraphNet(nn.Module):
    def __init__(self, cfg: JobSettings):
        super().__init__()
        self.left = nn.Parameter(torch.randn(cfg.sensors, cfg.rank) * 0.3)
        self.right = nn.Parameter(torch.randn(cfg.rank, cfg.sensors) * 0.3)
        self.temporal = nn.Linear(cfg.history, cfg.hidden)
        self.mix = nn.Linear(cfg.hidden, cfg.hidden)
        self.out = nn.Linear(2 * cfg.hidden, 1)

    def adjacency(self):
        return torch.softmax(torch.relu(self.left @ self.right), dim=-1)

    def forward(self, window, adj):
        h = torch.relu(self.temporal(window.transpose(1, 2)))
        neigh = torch.relu(self.mix(torch.einsum("ij,bjd->bid", adj, h)))
        return self.out(torch.cat([h, neigh], -1)).squeeze(-1)


class ForecastJob:
    def __init__(self, cfg: JobSettings):
        self.cfg = cfg
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.data = SensorSeries(cfg)
        self.model = AdaptiveGraphNet(cfg).to(self.device)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.loss_fn = nn.SmoothL1Loss()

    def _step(self, adj, window, target):
        self.opt.zero_grad()
        loss = self.loss_fn(self.model(window.to(self.device), adj), target.to(self.device))
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.opt.step()
        return loss.item()

    def train_epoch(self):
        self.model.train()
        loader = DataLoader(self.data.train, self.cfg.batch, shuffle=True)
        adj = self.model.adjacency()
        losses = [self._step(adj, w, t) for w, t in loader]
        return float(np.mean(losses))

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        adj, err, n = self.model.adjacency(), 0.0, 0
        for w, t in DataLoader(self.data.valid, 256):
            p = self.model(w.to(self.device), adj)
            err += (p - t.to(self.device)).abs().sum().item()
            n += t.numel()
        return err / n

    def run(self):
        log.info("initial MAE %.4f", self.validate())
        for e in range(self.cfg.epochs):
            tic = time.time()
            loss = self.train_epoch()
            log.info("epoch %d loss %.4f MAE %.4f (%.1fs)", e, loss, self.validate(), time.time() - tic)


if __name__ == "__main__":
    torch.manual_seed(0)
    ForecastJob(JobSettings()).run()
