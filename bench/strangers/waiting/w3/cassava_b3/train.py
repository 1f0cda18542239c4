"""Cassava leaf disease, EfficientNet-B3, mixed precision. Kaggle kills the session after 9 h -> --resume."""
import argparse
import os

import pandas as pd
import timm
import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T


class Leaf(Dataset):
    def __init__(self, df, root, tfm):
        self.files, self.y, self.root, self.tfm = df.image_id.values, df.label.values, root, tfm

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = Image.open(os.path.join(self.root, self.files[i])).convert("RGB")
        return self.tfm(img), int(self.y[i])


def get_loaders(args):
    df = pd.read_csv(os.path.join(args.data, "train.csv")).sample(frac=1.0, random_state=0)
    cut = int(len(df) * 0.9)
    norm = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    aug = T.Compose([T.RandomResizedCrop(300), T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.ToTensor(), norm])
    plain = T.Compose([T.Resize(330), T.CenterCrop(300), T.ToTensor(), norm])
    root = os.path.join(args.data, "train_images")
    tr = DataLoader(Leaf(df[:cut], root, aug), args.bs, shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
    va = DataLoader(Leaf(df[cut:], root, plain), args.bs * 2, num_workers=2, pin_memory=True)
    return tr, va


def main(args):
    dev = torch.device("cuda")
    tr, va = get_loaders(args)
    model = timm.create_model("tf_efficientnet_b3_ns", pretrained=not args.resume, num_classes=5).to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=args.lr, epochs=args.epochs, steps_per_epoch=len(tr))
    scaler = torch.amp.GradScaler("cuda")
    crit = nn.CrossEntropyLoss(label_smoothing=0.05)
    start, best = 0, 0.0

    if args.resume:
        ck = torch.load(args.resume, map_location=dev)
        model.load_state_dict(ck["model"])
        opt.load_state_dict(ck["opt"])
        scaler.load_state_dict(ck["scaler"])
        start, best = ck["epoch"] + 1, ck["best"]
        print("resumed at epoch", start, "best", best)

    for epoch in range(start, args.epochs):
        model.train()
        for x, y in tr:
            x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = crit(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(opt)
            scaler.update()
            sched.step()

        model.eval()
        ok = 0
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
            for x, y in va:
                ok += (model(x.to(dev)).argmax(1).cpu() == y).sum().item()
        acc = ok / len(va.dataset)
        print(f"epoch {epoch} loss {loss.item():.4f} val {acc:.4f} lr {opt.param_groups[0]['lr']:.2e}")
        if acc > best:
            best = acc
            torch.save(model.state_dict(), "best.pth")
        torch.save({"epoch": epoch, "best": best, "model": model.state_dict(),
                    "opt": opt.state_dict(), "scaler": scaler.state_dict()}, "last.pth")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="/kaggle/input/cassava-leaf-disease-classification")
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--lr", type=float, default=4e-4)
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--resume", default="")
    main(ap.parse_args())
