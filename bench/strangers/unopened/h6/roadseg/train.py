import json
import os

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from nets import RoadSeg
from objective import SegObjective


def roads(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:24, :24]
    masks = np.zeros((n, 24, 24), np.int64)
    for m in masks:
        th, off = rng.uniform(0, np.pi), rng.uniform(-5, 5)
        m[np.abs((xx - 12) * np.cos(th) + (yy - 12) * np.sin(th) - off) < 2.5] = 1
    imgs = (masks + rng.normal(0, 0.7, masks.shape))[:, None].astype(np.float32)
    return TensorDataset(torch.from_numpy(imgs), torch.from_numpy(masks))


def main():
    cfg = json.load(open("config.json"))
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29655")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train = roads(cfg["train_size"], 0)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, cfg["batch_size"], sampler=sampler)
    model = DDP(RoadSeg(cfg["width"]))
    objective = SegObjective(cfg["aux_weight"], cfg["aux_from_epoch"])
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        model.train()
        for img, mask in loader:
            loss = objective(model(img), mask, epoch)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        img, mask = roads(64, 1).tensors
        with torch.no_grad():
            pred = model.module(img)["main"].argmax(1)
        iou = ((pred & mask).sum() / (pred | mask).sum()).item()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} val IoU {iou:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
