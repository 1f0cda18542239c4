import argparse
import os
import random
from pathlib import Path

import numpy as np
import torch
from data import get_loaders
from model import SmallConvNet
from torch import nn
from tqdm import tqdm


def parse_args():
    parser = argparse.ArgumentParser(description="Train a small CNN on the 8x8 digits")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.1, help="peak learning rate")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "0")))
    parser.add_argument("--out", type=Path, default=Path("checkpoints"))
    return parser.parse_args()


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def train_one_epoch(model, loader, criterion, optimizer, scheduler, device, epoch):
    model.train()
    total_loss, total_correct, total = 0.0, 0, 0
    pbar = tqdm(loader, desc=f"epoch {epoch}", leave=False, mininterval=0.2)
    for images, targets in pbar:
        images, targets = images.to(device), targets.to(device)

        outputs = model(images)
        loss = criterion(outputs, targets)

        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()

        total_loss += loss.item() * images.size(0)
        total_correct += (outputs.argmax(1) == targets).sum().item()
        total += images.size(0)
        pbar.set_postfix(loss=f"{loss.item():.3f}", lr=f"{scheduler.get_last_lr()[0]:.4f}")
    return total_loss / total, total_correct / total


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    total_loss, total_correct, total = 0.0, 0, 0
    for images, targets in loader:
        images, targets = images.to(device), targets.to(device)
        outputs = model(images)
        total_loss += criterion(outputs, targets).item() * images.size(0)
        total_correct += (outputs.argmax(1) == targets).sum().item()
        total += images.size(0)
    return total_loss / total, total_correct / total


def main():
    args = parse_args()
    set_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    args.out.mkdir(parents=True, exist_ok=True)

    train_loader, val_loader = get_loaders(args.batch_size, seed=args.seed)
    model = SmallConvNet().to(device)
    n_params = sum(p.numel() for p in model.parameters())
    print(f"Using {device}, {n_params / 1e3:.1f}k parameters")

    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=args.lr,
        momentum=args.momentum,
        weight_decay=args.weight_decay,
        nesterov=True,
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr, total_steps=args.epochs * len(train_loader)
    )

    best_acc = 0.0
    for epoch in range(1, args.epochs + 1):
        train_loss, train_acc = train_one_epoch(
            model, train_loader, criterion, optimizer, scheduler, device, epoch
        )
        val_loss, val_acc = evaluate(model, val_loader, criterion, device)
        print(
            f"[{epoch:02d}/{args.epochs}] train loss {train_loss:.4f} acc {100 * train_acc:.2f}% | "
            f"val loss {val_loss:.4f} acc {100 * val_acc:.2f}%"
        )
        state = {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "val_acc": val_acc,
        }
        torch.save(state, args.out / "last.pt")
        if val_acc > best_acc:
            best_acc = val_acc
            torch.save(state, args.out / "best.pt")
    print(f"best val acc: {100 * best_acc:.2f}%")


if __name__ == "__main__":
    main()
