"""Cassava-style leaf classification, one fold.  python train_fold.py --fold 0"""
import argparse
import csv
import random

import numpy as np
import timm
import torch
import torch.nn as nn
from PIL import Image
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T

IMG = 512
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

train_tf = T.Compose([T.RandomResizedCrop(IMG), T.RandomHorizontalFlip(), T.RandomVerticalFlip(),
                      T.ColorJitter(0.1, 0.1, 0.1), T.ToTensor(), T.Normalize(MEAN, STD)])
valid_tf = T.Compose([T.Resize(IMG), T.CenterCrop(IMG), T.ToTensor(), T.Normalize(MEAN, STD)])


class LeafDataset(Dataset):
    def __init__(self, rows, root, tf):
        self.rows, self.root, self.tf = rows, root, tf

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        name, label = self.rows[i]
        img = Image.open(f"{self.root}/{name}").convert("RGB")
        return self.tf(img), int(label)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def train_one_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    total = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.detach()
    return (total / len(loader)).item()


def valid_one_epoch(model, loader, criterion, device):
    model.eval()
    total, hits, n = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        # tta: plain + horizontal flip
        logits = (model(images) + model(images.flip(-1))) / 2
        loss = criterion(logits, labels)
        total += loss.item() * labels.size(0)
        hits += (logits.argmax(1) == labels).sum().item()
        n += labels.size(0)
    return total / n, hits / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fold", type=int, default=0)
    ap.add_argument("--root", default="../input/leaves/train_images")
    ap.add_argument("--csv", default="../input/leaves/train.csv")
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--bs", type=int, default=16)
    args = ap.parse_args()
    seed_everything(719)
    device = torch.device("cuda")

    with open(args.csv) as f:
        rows = list(csv.reader(f))[1:]
    y = [int(r[1]) for r in rows]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=719).split(rows, y))
    tr_idx, va_idx = folds[args.fold]
    train_loader = DataLoader(LeafDataset([rows[i] for i in tr_idx], args.root, train_tf), batch_size=args.bs,
                              shuffle=True, drop_last=True, num_workers=4, pin_memory=True)
    valid_loader = DataLoader(LeafDataset([rows[i] for i in va_idx], args.root, valid_tf), batch_size=args.bs,
                              num_workers=4, pin_memory=True)

    model = timm.create_model("tf_efficientnet_b4_ns", pretrained=True, num_classes=5).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-6)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-4, epochs=args.epochs,
                                                    steps_per_epoch=len(train_loader))
    train_loss_fn, valid_loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss()

    best = 0.0
    for epoch in range(args.epochs):
        tr = train_one_epoch(model, train_loader, train_loss_fn, optimizer, scheduler, device)
        va, acc = valid_one_epoch(model, valid_loader, valid_loss_fn, device)
        print(f"fold {args.fold} epoch {epoch} train {tr:.4f} valid {va:.4f} acc {acc:.4f}")
        if acc > best:
            best = acc
            torch.save(model.state_dict(), f"effnet_b4_fold{args.fold}.pth")


if __name__ == "__main__":
    main()
