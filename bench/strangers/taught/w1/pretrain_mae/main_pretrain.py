import math

import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

from mae import TabMAE
from options import get_args


def adjust_learning_rate(optimizer, epoch, args):
    """Half-cycle cosine after warmup, epoch is fractional."""
    if epoch < args.warmup_epochs:
        lr = args.lr * epoch / args.warmup_epochs
    else:
        t = (epoch - args.warmup_epochs) / (args.epochs - args.warmup_epochs)
        lr = args.min_lr + (args.lr - args.min_lr) * 0.5 * (1.0 + math.cos(math.pi * t))
    for group in optimizer.param_groups:
        group["lr"] = lr * group.get("lr_scale", 1.0)
    return lr


def to_patches(img):
    n = img.size(0)
    return img.view(n, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(n, 16, 4)


def main(args):
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().images, dtype=torch.float32) / 8.0 - 1.0
    loader = DataLoader(TensorDataset(to_patches(images)), args.batch_size, shuffle=True, drop_last=True)

    model = TabMAE()
    eff_batch_size = args.batch_size * args.accum_iter * args.world_size
    if args.lr is None:
        args.lr = args.blr * (eff_batch_size // 256)
    print("effective batch size: %d" % eff_batch_size)

    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": args.weight_decay},
                                   {"params": rest, "weight_decay": 0.0}], lr=args.lr, betas=(0.9, 0.95))

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        optimizer.zero_grad()
        for it, (patches,) in enumerate(loader):
            if it % args.accum_iter == 0:
                adjust_learning_rate(optimizer, it / len(loader) + epoch, args)
            loss = model(patches, args.mask_ratio)
            total += loss.item()
            (loss / args.accum_iter).backward()
            if (it + 1) % args.accum_iter == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} masked mse {total / len(loader):.4f}")
    torch.save({"model": model.state_dict(), "args": vars(args)}, "/tmp/mae.pth")


if __name__ == "__main__":
    main(get_args())
