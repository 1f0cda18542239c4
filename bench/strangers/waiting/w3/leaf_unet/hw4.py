# HW4: segmentation with a small U-Net. Shapes instead of the real leaf photos so it runs on my laptop
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader


class Leaves(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(32.), torch.arange(32.), indexing="ij")
        self.imgs, self.masks = [], []
        for _ in range(n):
            cx, cy = 8 + 16 * torch.rand(2, generator=g)
            a, b = 4 + 7 * torch.rand(2, generator=g)
            m = (((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2 < 1).float()
            img = 0.8 * m + 0.5 * torch.randn(3, 32, 32, generator=g)
            self.imgs.append(img)
            self.masks.append(m[None])

    def __len__(self):
        return len(self.imgs)

    def __getitem__(self, i):
        return self.imgs[i], self.masks[i]


def double_conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                         nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1 = double_conv(3, 8)
        self.d2 = double_conv(8, 16)
        self.mid = nn.Sequential(double_conv(16, 32), nn.Dropout2d(0.3))
        self.u2 = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.c2 = double_conv(32, 16)
        self.u1 = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.c1 = double_conv(16, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.mid(F.max_pool2d(b, 2))
        b = self.c2(torch.cat([self.u2(c), b], 1))
        a = self.c1(torch.cat([self.u1(b), a], 1))
        return self.out(a)


def dice_score(logits, mask):
    p = (logits > 0).float()
    inter = (p * mask).sum((1, 2, 3))
    return (2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)


torch.manual_seed(0)
train_loader = DataLoader(Leaves(128, 1), batch_size=16, shuffle=True)
val_loader = DataLoader(Leaves(30, 2), batch_size=1)

model = UNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(4):
    model.train()
    train_loss = 0
    for img, mask in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(img), mask)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()

    # evaluation, no gradients needed here
    val_loss, dices = 0, []
    with torch.no_grad():
        for img, mask in val_loader:
            logits = model(img)
            val_loss += criterion(logits, mask).item()
            dices.append(dice_score(logits, mask))
    print("Epoch %d train %.4f val %.4f dice %.3f" % (
        epoch + 1, train_loss / len(train_loader), val_loss / len(val_loader), torch.cat(dices).mean()))
