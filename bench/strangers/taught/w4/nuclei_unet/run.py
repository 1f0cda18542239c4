# nuclei segmentation, synthetic stand-in for the DSB2018 tiles
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

from losses import BCEDice


class Blobs(Dataset):
    def __init__(self, n, size=32, seed=0):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.x, self.y = [], []
        for _ in range(n):
            m = torch.zeros(size, size)
            for _ in range(int(torch.randint(1, 5, (1,), generator=g))):
                cy, cx = torch.randint(4, size - 4, (2,), generator=g)
                r = int(torch.randint(2, 5, (1,), generator=g))
                m[(yy - cy) ** 2 + (xx - cx) ** 2 <= r * r] = 1
            self.x.append((m + 0.7 * torch.randn(size, size, generator=g))[None])
            self.y.append(m[None])

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class MiniUNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.d1, self.d2 = conv(1, c), conv(c, 2 * c)
        self.mid = conv(2 * c, 2 * c)
        self.u1 = conv(4 * c, c)
        self.u2 = conv(2 * c, c)
        self.out = nn.Conv2d(c, 1, 1)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        m = self.mid(self.pool(b))
        u = self.u1(torch.cat([self.up(m), b], 1))
        return self.out(self.u2(torch.cat([self.up(u), a], 1)))


@torch.no_grad()
def mean_iou(net, dl):
    net.eval()
    ious = []
    for x, y in dl:
        p = net(x) > 0
        t = y > 0.5
        ious.append((p & t).sum((1, 2, 3)) / (p | t).sum((1, 2, 3)).clamp(min=1))
    return torch.cat(ious).mean().item()


torch.manual_seed(0)
train_dl = DataLoader(Blobs(256), batch_size=32, shuffle=True)
val_dl = DataLoader(Blobs(64, seed=1), batch_size=32)
net, crit = MiniUNet(), BCEDice(dice_weight=0.2)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

for epoch in range(6):
    net.train()
    running = 0.0
    for x, y in train_dl:
        loss = crit(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
    print(f"[{epoch}] loss {running / len(train_dl):.4f}  val IoU {mean_iou(net, val_dl):.4f}")
