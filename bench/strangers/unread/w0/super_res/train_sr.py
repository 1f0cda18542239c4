"""2x super resolution on synthetic textures; written for a single GPU node."""
from __future__ import annotations

import argparse
import logging
import time
from collections import defaultdict
from typing import Iterator

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("sr")


class Textures(Dataset):
    def __init__(self, n: int, side: int, seed: int) -> None:
        g = torch.Generator().manual_seed(seed)
        freq = torch.rand(n, 2, 1, 1, generator=g) * 20
        phase = torch.rand(n, 1, 1, generator=g) * 6.28
        y, x = torch.meshgrid(torch.linspace(0, 1, side), torch.linspace(0, 1, side), indexing="ij")
        self.high = torch.sin(freq[:, 0] * x + freq[:, 1] * y + phase)[:, None]
        self.low = nn.functional.avg_pool2d(self.high, 2)

    def __len__(self) -> int:
        return len(self.high)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.low[i], self.high[i]


class LapTimer:
    """Sums up the seconds spent in the parts of a step."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds: dict[str, float] = defaultdict(float)
        self.mark = time.perf_counter()

    def lap(self, part: str) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        self.seconds[part] += now - self.mark
        self.mark = now


class SrTrainer:
    def __init__(self, device: torch.device, lr: float) -> None:
        self.device = device
        self.model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.PReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.PReLU(),
                                   nn.Conv2d(32, 4, 3, padding=1), nn.PixelShuffle(2)).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.timer = LapTimer(device)

    def batches(self, loader: DataLoader) -> Iterator[tuple[Tensor, Tensor]]:
        for low, high in loader:
            yield low.to(self.device, non_blocking=True), high.to(self.device, non_blocking=True)

    def train_epoch(self, loader: DataLoader) -> float:
        self.model.train()
        total = torch.zeros((), device=self.device)
        for low, high in self.batches(loader):
            self.timer.lap("load")
            loss = nn.functional.l1_loss(self.model(low), high)
            self.timer.lap("forward")
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.timer.lap("backward")
            self.optimizer.step()
            self.timer.lap("update")
            total += loss.detach()
        return total.item() / len(loader)

    @torch.inference_mode()
    def psnr(self, loader: DataLoader) -> float:
        self.model.eval()
        se, count = torch.zeros((), device=self.device), 0
        for low, high in self.batches(loader):
            se += (self.model(low) - high).square().sum()
            count += high.numel()
        return (10 * torch.log10(4.0 / (se / count))).item()


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--workers", type=int, default=0)
    ap.add_argument("--show-timing", action="store_true")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pin = device.type == "cuda"
    train = DataLoader(Textures(512, 24, 1), args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=pin)
    test = DataLoader(Textures(64, 24, 2), 64, num_workers=args.workers, pin_memory=pin)
    trainer = SrTrainer(device, args.lr)
    for epoch in range(args.epochs):
        loss = trainer.train_epoch(train)
        log.info("epoch %d loss %.4f psnr %.2f", epoch, loss, trainer.psnr(test))
    if args.show_timing:
        log.info("seconds: %s", dict(trainer.timer.seconds))
    torch.save(trainer.model.state_dict(), "sr.pt")


if __name__ == "__main__":
    main()
