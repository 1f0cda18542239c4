"""Street-scene segmentation, DeepLab-ish head on a small dilated backbone.

Labels are the trainId maps written by our conversion script (same layout as Cityscapes:
0..18 are the evaluated classes, everything else is mapped to 255).
"""
import os
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset

NUM_CLASSES = 19


class Streets(Dataset):
    def __init__(self, root, split, crop=None):
        self.img = sorted(Path(root, "leftImg8bit", split).rglob("*.png"))
        self.crop = crop
        self.root, self.split = root, split

    def label_path(self, p):
        name = p.name.replace("_leftImg8bit", "_gtFine_labelTrainIds")
        return Path(self.root, "gtFine", self.split, p.parent.name, name)

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        p = self.img[i]
        x = np.asarray(Image.open(p).convert("RGB"))
        y = np.asarray(Image.open(self.label_path(p)))
        if self.crop:
            r = np.random.randint(0, x.shape[0] - self.crop + 1)
            c = np.random.randint(0, x.shape[1] - self.crop + 1)
            x, y = x[r:r + self.crop, c:c + self.crop], y[r:r + self.crop, c:c + self.crop]
            if np.random.rand() < 0.5:
                x, y = x[:, ::-1], y[:, ::-1]
        x = torch.from_numpy(x.astype(np.float32).transpose(2, 0, 1).copy()) / 127.5 - 1
        return x, torch.from_numpy(y.astype(np.int64).copy())


class ASPP(nn.Module):
    def __init__(self, cin, cout, rates=(1, 6, 12)):
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Conv2d(cin, cout, 3, padding=r, dilation=r, bias=False),
                          nn.BatchNorm2d(cout), nn.ReLU(inplace=True)) for r in rates)
        self.fuse = nn.Conv2d(cout * len(rates), cout, 1)

    def forward(self, x):
        return F.relu(self.fuse(torch.cat([b(x) for b in self.branches], 1)))


class StreetNet(nn.Module):
    def __init__(self, num_classes, w=64):
        super().__init__()
        def cbr(i, o, s=1, d=1):
            return nn.Sequential(nn.Conv2d(i, o, 3, s, d, d, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
        self.backbone = nn.Sequential(cbr(3, w // 2, 2), cbr(w // 2, w, 2), cbr(w, 2 * w, 2),
                                      cbr(2 * w, 2 * w, d=2), cbr(2 * w, 2 * w, d=4))
        self.aspp = ASPP(2 * w, w)
        self.cls = nn.Conv2d(w, num_classes, 1)

    def forward(self, x):
        y = self.cls(self.aspp(self.backbone(x)))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


class ConfusionMatrix:
    def __init__(self, n):
        self.n = n
        self.mat = torch.zeros(n, n, dtype=torch.long)

    def update(self, gt, pred):
        k = gt < self.n
        inds = self.n * gt[k] + pred[k]
        self.mat += torch.bincount(inds, minlength=self.n ** 2).view(self.n, self.n).cpu()

    def miou(self):
        h = self.mat.double()
        iou = h.diag() / (h.sum(0) + h.sum(1) - h.diag()).clamp(min=1)
        return iou.mean().item()


def poly_lr(opt, total, power=0.9):
    return torch.optim.lr_scheduler.LambdaLR(opt, lambda it: (1 - it / total) ** power)


def main(root=os.environ.get("STREETS", "/data/streets"), epochs=80, bs=8):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_dl = DataLoader(Streets(root, "train", crop=512), bs, shuffle=True, num_workers=8, drop_last=True)
    val_dl = DataLoader(Streets(root, "val"), 2, num_workers=4)
    net = StreetNet(NUM_CLASSES).to(device)
    criterion = nn.CrossEntropyLoss()
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    sched = poly_lr(opt, epochs * len(train_dl))
    for ep in range(epochs):
        net.train()
        for x, y in train_dl:
            x, y = x.to(device), y.to(device)
            loss = criterion(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
        cm = ConfusionMatrix(NUM_CLASSES)
        net.eval()
        with torch.no_grad():
            for x, y in val_dl:
                cm.update(y.to(device).flatten(), net(x.to(device)).argmax(1).flatten())
        print(f"[{ep}] loss {loss.item():.3f} mIoU {cm.miou():.4f}")
        torch.save(net.state_dict(), f"streetnet_{ep:03d}.pth")


if __name__ == "__main__":
    main()
