import os
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Slides(Dataset):
    """24x24 tiles with zero to two bright cells; target is a heat map and the cell sizes."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:24, :24]
        self.img = rng.normal(0, 0.3, (n, 1, 24, 24)).astype(np.float32)
        self.heat = np.zeros((n, 1, 24, 24), np.float32)
        self.size = np.zeros((n, 1, 24, 24), np.float32)
        for i in range(n):
            for _ in range(rng.choice(3, p=[0.6, 0.25, 0.15])):
                cy, cx = rng.integers(4, 20, 2)
                r = rng.uniform(1.5, 3.5)
                d2 = (yy - cy) ** 2 + (xx - cx) ** 2
                self.img[i, 0] += np.exp(-d2 / (2 * r * r))
                self.heat[i, 0, cy, cx] = 1
                self.size[i, 0, cy, cx] = r

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i], self.heat[i], self.size[i]


class CenterNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2), nn.ReLU(),
            nn.Conv2d(width, width, 5, padding=2), nn.ReLU(),
        )
        self.heat = nn.Conv2d(width, 1, 1)
        self.radius = nn.Conv2d(width, 1, 1)
        nn.init.constant_(self.heat.bias, -4.0)

    def forward(self, x):
        f = self.trunk(x)
        return self.heat(f), self.radius(f)


def detection_loss(heat_logit, radius, heat, size):
    n_pos = heat.sum()
    focal = F.binary_cross_entropy_with_logits(heat_logit, heat, pos_weight=torch.tensor(20.0), reduction="sum")
    reg = (heat * (radius - size).abs()).sum()
    return (focal + reg) / n_pos


def has_cells(heat):
    return bool(heat.sum() > 0)


def train_one_epoch(net, loader, opt, rank, epoch):
    net.train()
    history = []
    for img, heat, size in loader:
        if not has_cells(heat):
            continue
        h, r = net(img)
        loss = detection_loss(h, r, heat, size)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(loss.item())
    print(f"rank {rank} epoch {epoch} updates {len(history)} loss {np.mean(history):.3f}", flush=True)


def main():
    env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29623", "RANK": "0", "WORLD_SIZE": "1"}
    for k in env:
        os.environ.setdefault(k, env[k])
    dist.init_process_group("gloo", timeout=timedelta(seconds=6))
    rank = dist.get_rank()
    torch.manual_seed(5)
    slides = Slides(240, seed=3)
    sampler = DistributedSampler(slides, seed=9)
    loader = DataLoader(slides, batch_size=4, sampler=sampler)
    net = DDP(CenterNet())
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        train_one_epoch(net, loader, opt, rank, epoch)

    test = Slides(80, seed=4)
    with torch.no_grad():
        h, _ = net.module(torch.from_numpy(test.img))
    peak = h.flatten(1).argmax(1)
    some = torch.from_numpy(test.heat).flatten(1)
    hit = some.gather(1, peak[:, None]).squeeze(1)[some.sum(1) > 0].mean()
    if rank == 0:
        print(f"peak on a centre: {hit:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
