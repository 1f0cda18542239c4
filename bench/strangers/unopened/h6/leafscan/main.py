import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from engine import Engine, PrintHook, ReshuffleHook
from leaves import LeafImages


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--bs", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--n", type=int, default=1000)
    return p.parse_args()


def build_net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 16, 5),
    )


def main():
    args = parse()
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="29544")
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    train = LeafImages(args.n)
    loader = DataLoader(train, batch_size=args.bs, sampler=DistributedSampler(train, shuffle=True))
    net = DDP(build_net())
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    Engine(net, loader, opt, nn.CrossEntropyLoss(), [ReshuffleHook(), PrintHook()]).run(args.epochs)

    held_out = LeafImages(300, seed=99)
    with torch.no_grad():
        pred = net.module(torch.from_numpy(held_out.x)).argmax(1)
    if dist.get_rank() == 0:
        print("held-out accuracy", (pred == torch.from_numpy(held_out.y)).float().mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
