"""torchrun --nproc_per_node=4 train_ddp.py --data /data/cifar100 [--aux]"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

from network import SmallInception


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="/data/cifar100")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--batch", type=int, default=128, help="per GPU")
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--aux", action="store_true", help="deep supervision on the middle stage")
    p.add_argument("--aux-weight", type=float, default=0.3)
    return p.parse_args()


def make_loaders(args):
    norm = transforms.Normalize((0.507, 0.487, 0.441), (0.267, 0.256, 0.276))
    tf_train = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(),
                                   transforms.ToTensor(), norm])
    tf_val = transforms.Compose([transforms.ToTensor(), norm])
    train = datasets.CIFAR100(args.data, True, tf_train)
    val = datasets.CIFAR100(args.data, False, tf_val)
    sampler = DistributedSampler(train, shuffle=True, drop_last=True)
    return (DataLoader(train, args.batch, sampler=sampler, num_workers=4, pin_memory=True, drop_last=True),
            DataLoader(val, 256, sampler=DistributedSampler(val, shuffle=False), num_workers=2), sampler)


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    stats = torch.zeros(2, device=device)
    for x, y in loader:
        out, _ = model(x.to(device))
        stats[0] += (out.argmax(1) == y.to(device)).sum()
        stats[1] += len(y)
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def main():
    args = parse()
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)

    train_dl, val_dl, sampler = make_loaders(args)
    model = SmallInception(num_classes=100, use_aux=args.aux).to(device)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = DDP(model, device_ids=[local])
    opt = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    ce = nn.CrossEntropyLoss(label_smoothing=0.1)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in train_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            out, aux = model(x)
            loss = ce(out, y)
            if aux is not None:
                loss = loss + args.aux_weight * ce(aux, y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        sched.step()
        acc = validate(model, val_dl, device)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} acc {acc:.4f}", flush=True)
            torch.save(model.module.state_dict(), "last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
