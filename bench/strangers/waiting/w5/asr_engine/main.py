import os

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel as DDP

from builder import build_loader
from engine import Engine
from net import CTCNet


def main():
    with open("conf/asr.yaml") as f:
        cfg = yaml.safe_load(f)
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    torch.manual_seed(cfg["seed"])
    os.makedirs(cfg["out"], exist_ok=True)

    train = build_loader(cfg["train_manifest"], cfg["batch_size"], train=True)
    dev = build_loader(cfg["dev_manifest"], cfg["batch_size"], train=False)
    model = DDP(CTCNet(**cfg["model"]).to(device), device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg["lr"], epochs=cfg["epochs"], steps_per_epoch=len(train))
    Engine(model, optimizer, scheduler, cfg, device).fit(train, dev)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
