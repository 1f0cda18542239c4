"""ViT-Ti from scratch on ImageNet-100, adapted from the PyTorch ImageNet example.

torchrun --nproc_per_node=4 main.py --data /datasets/in100 [--resume out/last.pt]
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, models, transforms as T


def loaders(args):
    norm = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    tr = datasets.ImageFolder(os.path.join(args.data, "train"), T.Compose(
        [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.RandAugment(), T.ToTensor(), norm]))
    va = datasets.ImageFolder(os.path.join(args.data, "val"), T.Compose(
        [T.Resize(256), T.CenterCrop(224), T.ToTensor(), norm]))
    sampler = DistributedSampler(tr)
    kw = dict(batch_size=args.batch_size, num_workers=8, pin_memory=True)
    return (DataLoader(tr, sampler=sampler, drop_last=True, **kw),
            DataLoader(va, sampler=DistributedSampler(va, shuffle=False), **kw), sampler)


def save_checkpoint(path, model, optimizer, scheduler, epoch, best):
    torch.save({
        "epoch": epoch + 1,
        "state_dict": model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "best_acc1": best,
    }, path)


def load_checkpoint(path, model, scheduler, device):
    ckpt = torch.load(path, map_location=device)
    model.load_state_dict(ckpt["state_dict"])
    scheduler.load_state_dict(ckpt["scheduler"])
    return ckpt["epoch"], ckpt["best_acc1"]


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    stat = torch.zeros(2, device=device)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        stat[0] += (model(x).argmax(1) == y).sum()
        stat[1] += y.numel()
    dist.all_reduce(stat)
    return (stat[0] / stat[1]).item()


def main(args):
    dist.init_process_group("nccl")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    torch.manual_seed(args.seed + rank)
    train_loader, val_loader, sampler = loaders(args)

    net = models.VisionTransformer(image_size=224, patch_size=16, num_layers=12, num_heads=3, hidden_dim=192,
                                   mlp_dim=768, num_classes=100).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.05, betas=(0.9, 0.95))
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=10)
    cos = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs - 10)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cos], milestones=[10])

    start, best = 0, 0.0
    if args.resume:
        start, best = load_checkpoint(args.resume, net, scheduler, device)
        for g, lr in zip(optimizer.param_groups, scheduler.get_last_lr()):
            g["lr"] = lr
    model = DDP(net, device_ids=[local])
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        scheduler.step()
        acc = validate(model, val_loader, device)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} acc {acc:.4f}", flush=True)
            best_now = acc > best
            best = max(acc, best)
            save_checkpoint(os.path.join(args.out, "last.pt"), model, optimizer, scheduler, epoch, best)
            if best_now:
                save_checkpoint(os.path.join(args.out, "best.pt"), model, optimizer, scheduler, epoch, best)
        else:
            best = max(acc, best)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--out", default="out")
    p.add_argument("--resume")
    p.add_argument("--epochs", type=int, default=200)
    p.add_argument("--batch-size", type=int, default=256)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=0)
    main(p.parse_args())
