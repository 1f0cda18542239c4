import logging
import os
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

log = logging.getLogger("beats")


def replicas():
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def replica_id():
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


@dataclass
class RunConfig:
    batch_size: int = 32
    epochs: int = 5
    lr: float = 1e-3
    n_mels: int = 24
    frames: int = 40
    n_genres: int = 6
    seed: int = 11
    world: int = field(default_factory=replicas)
    rank: int = field(default_factory=replica_id)


CFG = RunConfig()


class SpecNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(cfg.n_mels, 48, 5, padding=2), nn.BatchNorm1d(48), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(48, 64, 5, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
        )
        self.head = nn.Linear(64, cfg.n_genres)

    def forward(self, spec):
        return self.head(self.features(spec).mean(-1))


def synth_spectrograms(n, cfg, seed):
    """Every genre has its own beat period and its own band."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, cfg.n_genres, n)
    x = rng.normal(0, 1.0, (n, cfg.n_mels, cfg.frames)).astype(np.float32)
    t = np.arange(cfg.frames)
    for i, g in enumerate(y):
        beat = (np.sin(2 * np.pi * (t + rng.integers(0, 12)) / (4 + 2 * g)) > 0.3).astype(np.float32)
        band = slice(2 * g, 2 * g + 10)
        x[i, band] += 0.9 * beat
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class BeatTrainer:
    def __init__(self, cfg, device):
        self.cfg, self.device = cfg, device
        torch.manual_seed(cfg.seed)
        self.model = DistributedDataParallel(SpecNet(cfg).to(device))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.loss_fn = nn.CrossEntropyLoss()
        train = synth_spectrograms(1200, cfg, seed=1)
        self.sampler = DistributedSampler(train, num_replicas=cfg.world, rank=cfg.rank, seed=cfg.seed)
        self.loader = DataLoader(train, batch_size=cfg.batch_size, sampler=self.sampler)
        self.test = synth_spectrograms(400, cfg, seed=2)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.sampler.set_epoch(epoch)
            self.model.train()
            seen, loss_sum = 0, 0.0
            for spec, genre in self.loader:
                spec, genre = spec.to(self.device), genre.to(self.device)
                loss = self.loss_fn(self.model(spec), genre)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                seen += len(genre)
                loss_sum += loss.item() * len(genre)
            if dist.get_rank() == 0:
                log.info("epoch %d  clips/rank %d  loss %.4f  test acc %.3f", epoch, seen, loss_sum / seen, self.accuracy())

    @torch.no_grad()
    def accuracy(self):
        net = self.model.module.eval()
        x, y = self.test.tensors
        return (net(x.to(self.device)).argmax(-1).cpu() == y).float().mean().item()


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    dist.init_process_group(
        "gloo",
        rank=int(os.environ.get("RANK", 0)),
        world_size=int(os.environ.get("WORLD_SIZE", 1)),
    )
    log.info("rank %d of %d up", dist.get_rank(), dist.get_world_size())
    BeatTrainer(CFG, torch.device("cpu")).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
