import argparse
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from dist_utils import MeanMetric, init, is_main


class DepthPairs(Dataset):
    def __init__(self, root):
        self.files = sorted(Path(root).glob("*.npz"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        z = np.load(self.files[i])
        rgb = torch.from_numpy(z["rgb"]).permute(2, 0, 1).float() / 255
        return rgb, torch.from_numpy(z["depth"]).float().unsqueeze(0)


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.GroupNorm(8, o), nn.ReLU(inplace=True))


class DepthNet(nn.Module):
    def __init__(self, w=32):
        super().__init__()
        self.e1, self.e2, self.e3 = down(3, w), down(w, 2 * w), down(2 * w, 4 * w)
        self.d2 = nn.Conv2d(6 * w, 2 * w, 3, padding=1)
        self.d1 = nn.Conv2d(3 * w, w, 3, padding=1)
        self.out = nn.Conv2d(w, 1, 3, padding=1)

    def forward(self, x):
        a = self.e1(x)
        b = self.e2(a)
        c = self.e3(b)
        y = F.relu(self.d2(torch.cat([F.interpolate(c, size=b.shape[-2:]), b], 1)))
        y = F.relu(self.d1(torch.cat([F.interpolate(y, size=a.shape[-2:]), a], 1)))
        return F.softplus(F.interpolate(self.out(y), size=x.shape[-2:], mode="bilinear")) + 1e-3


def silog(pred, gt):
    valid = gt > 0
    d = torch.log(pred[valid]) - torch.log(gt[valid])
    return (d ** 2).mean() - 0.85 * d.mean() ** 2


def validate(model, loader, device):
    model.eval()
    metric = MeanMetric(device)
    with torch.no_grad():
        for rgb, depth in loader:
            rgb, depth = rgb.to(device), depth.to(device)
            valid = depth > 0
            err = ((model(rgb) - depth).abs() / depth.clamp(min=1e-3))[valid].mean()
            metric.add(err, len(rgb))
    return metric.compute()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("data", type=Path)
    ap.add_argument("--epochs", type=int, default=25)
    ap.add_argument("--batch", type=int, default=16)
    args = ap.parse_args()
    local_rank = init()
    device = torch.device("cuda", local_rank)

    train_set, val_set = DepthPairs(args.data / "train"), DepthPairs(args.data / "val")
    sampler = DistributedSampler(train_set, shuffle=True)
    train = DataLoader(train_set, args.batch, sampler=sampler, num_workers=6, pin_memory=True, drop_last=True)
    val = DataLoader(val_set, args.batch, num_workers=6)

    model = DDP(DepthNet().to(device), device_ids=[local_rank])
    opt = torch.optim.AdamW(model.parameters(), lr=4e-4)
    best = float("inf")
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        running = MeanMetric(device)
        for rgb, depth in train:
            rgb, depth = rgb.to(device, non_blocking=True), depth.to(device, non_blocking=True)
            loss = silog(model(rgb), depth)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running.add(loss.item(), len(rgb))
        train_loss = running.compute()
        if is_main():
            abs_rel = validate(model.module, val, device)
            print(f"epoch {epoch} silog {train_loss:.4f} abs-rel {abs_rel:.4f}", flush=True)
            if abs_rel < best:
                best = abs_rel
                torch.save(model.module.state_dict(), "depth_best.pt")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
