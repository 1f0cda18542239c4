import argparse

import timm
import torch
from sklearn.metrics import f1_score
from torch.utils.data import DataLoader

from data import CLASSES, PartImages
from losses import FocalLoss


@torch.inference_mode()
def validate(model, loader, device):
    model.eval()
    pred, true = [], []
    for x, y in loader:
        pred += model(x.to(device)).argmax(1).tolist()
        true += y.tolist()
    return f1_score(true, pred, average="macro")


def main(opts):
    device = torch.device(opts.device)
    train, val = PartImages(opts.data + "/train", True), PartImages(opts.data + "/val", False)
    train_loader = DataLoader(train, 32, shuffle=True, num_workers=8, pin_memory=True)
    val_loader = DataLoader(val, 64, num_workers=8, pin_memory=True)

    model = timm.create_model("resnet34", pretrained=True, num_classes=len(CLASSES)).to(device)
    criterion = FocalLoss(train.counts()).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=opts.lr, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=opts.epochs)

    best = 0.0
    for epoch in range(opts.epochs):
        model.train()
        for images, labels in train_loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        scheduler.step()
        f1 = validate(model, val_loader, device)
        print(f"epoch {epoch}: loss {loss.item():.4f} macro-F1 {f1:.4f}")
        if f1 > best:
            best = f1
            torch.save(model.state_dict(), opts.out)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("data")
    p.add_argument("--device", default="cuda")
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--out", default="best.pth")
    main(p.parse_args())
