import logging
import uuid
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from source import FixedEchoes, RandomEchoes

logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")


@dataclass
class Options:
    seed: int = 21
    epochs: int = 4
    per_epoch: int = 1600
    batch: int = 40
    workers: int = 2
    lr: float = 3e-3


def build(bins=32):
    return nn.Sequential(nn.Unflatten(1, (1, bins)), nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Flatten(),
                         nn.Linear(8 * bins, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0))


def main(o: Options):
    # the name of a run is different each time, its numbers are not
    log = logging.getLogger(f"radar-{uuid.uuid4().hex[:6]}")
    torch.manual_seed(o.seed)
    stream = DataLoader(RandomEchoes(o.per_epoch), batch_size=o.batch, num_workers=o.workers,
                        generator=torch.Generator().manual_seed(o.seed))
    fixed = DataLoader(FixedEchoes(400), batch_size=200)
    net = build()
    opt = torch.optim.Adam(net.parameters(), lr=o.lr)
    for epoch in range(o.epochs):
        net.train()
        n, total = 0, 0.0
        for x, y in stream:
            loss = nn.functional.smooth_l1_loss(net(x), y, beta=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            n, total = n + len(y), total + loss.item() * len(y)
        net.eval()
        with torch.no_grad():
            mae = sum((net(x) - y).abs().sum().item() for x, y in fixed) / 400 * 32
        log.info("epoch %d seen %d loss %.4f test error %.2f bins", epoch, n, total / n, mae)


if __name__ == "__main__":
    main(Options())
