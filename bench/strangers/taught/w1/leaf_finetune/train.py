"""Fine-tune an EfficientNet on the cassava leaf images.

python train.py --data /data/cassava --epochs 10
"""
import argparse
import os

import timm
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from tqdm import tqdm


def get_loaders(root, bs, size):
    norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    train_tf = transforms.Compose([
        transforms.RandomResizedCrop(size, scale=(0.6, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.ColorJitter(0.2, 0.2, 0.2),
        transforms.ToTensor(),
        norm,
    ])
    val_tf = transforms.Compose([
        transforms.Resize(int(size * 1.14)),
        transforms.CenterCrop(size),
        transforms.ToTensor(),
        norm,
    ])
    train_ds = datasets.ImageFolder(os.path.join(root, "train"), train_tf)
    val_ds = datasets.ImageFolder(os.path.join(root, "val"), val_tf)
    train_dl = DataLoader(train_ds, bs, shuffle=True, num_workers=8, pin_memory=True, drop_last=True)
    val_dl = DataLoader(val_ds, bs * 2, shuffle=False, num_workers=8, pin_memory=True)
    return train_dl, val_dl, len(train_ds.classes)


def train_one_epoch(model, loader, criterion, optimizer, scheduler, scaler, device, max_norm):
    model.train()
    running, seen = 0.0, 0
    bar = tqdm(loader, leave=False)
    for images, target in bar:
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)

        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(images)
            loss = criterion(logits, target)

        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.update()
        scheduler.step()

        running += loss.item() * images.size(0)
        seen += images.size(0)
        bar.set_description(f"loss {running / seen:.4f} lr {scheduler.get_last_lr()[0]:.2e}")
    return running / seen


@torch.no_grad()
def validate(model, loader, criterion, device):
    model.eval()
    total, correct, loss_sum = 0, 0, 0.0
    for images, target in loader:
        images, target = images.to(device), target.to(device)
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(images)
        loss_sum += criterion(logits.float(), target).item() * len(target)
        correct += (logits.argmax(1) == target).sum().item()
        total += len(target)
    return loss_sum / total, correct / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--arch", default="tf_efficientnet_b3_ns")
    p.add_argument("--size", type=int, default=384)
    p.add_argument("--bs", type=int, default=32)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--max-norm", type=float, default=5.0)
    args = p.parse_args()

    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    train_dl, val_dl, n_classes = get_loaders(args.data, args.bs, args.size)
    model = timm.create_model(args.arch, pretrained=True, num_classes=n_classes).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr, total_steps=args.epochs * len(train_dl), pct_start=0.1)
    scaler = torch.amp.GradScaler("cuda")

    best = 0.0
    for epoch in range(args.epochs):
        tr = train_one_epoch(model, train_dl, criterion, optimizer, scheduler, scaler, device, args.max_norm)
        vl, acc = validate(model, val_dl, criterion, device)
        print(f"epoch {epoch}: train {tr:.4f} val {vl:.4f} acc {acc:.4f}")
        if acc > best:
            best = acc
            torch.save(model.state_dict(), f"{args.arch}_best.pth")


if __name__ == "__main__":
    main()
