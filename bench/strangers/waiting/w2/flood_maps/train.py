import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from data import IGNORE, FloodTiles


class FloodNet(nn.Module):
    def __init__(self, bands=2, classes=3, w=16):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(bands, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(w, 2 * w, 3, 2, 1), nn.BatchNorm2d(2 * w), nn.ReLU())
        self.up = nn.Sequential(nn.Conv2d(3 * w, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU())
        self.main_head = nn.Conv2d(w, classes, 1)
        self.coarse_head = nn.Conv2d(2 * w, classes, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(a)
        up = F.interpolate(b, size=a.shape[-2:], mode="nearest")
        main = self.main_head(self.up(torch.cat([a, up], 1)))
        if self.training:
            return main, self.coarse_head(b)
        return main


def flood_iou(net, loader, cls=1):
    net.eval()
    inter = union = 0
    with torch.no_grad():
        for x, y in loader:
            pred = net(x).argmax(1)
            keep = y != IGNORE
            p, t = (pred == cls)[keep], (y == cls)[keep]
            inter += (p & t).sum().item()
            union += (p | t).sum().item()
    return inter / max(union, 1)


def main():
    torch.manual_seed(0)
    train = DataLoader(FloodTiles(160, 0), 16, shuffle=True)
    val = DataLoader(FloodTiles(40, 1), 40)
    net = FloodNet()
    ce = nn.CrossEntropyLoss(ignore_index=IGNORE, weight=torch.tensor([0.8, 1.5, 1.0]))
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    for epoch in range(6):
        net.train()
        for x, y in train:
            main_out, coarse = net(x)
            small = y[:, ::2, ::2]
            loss = ce(main_out, y) + 0.4 * ce(coarse, small)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f} flood IoU {flood_iou(net, val):.3f}")


if __name__ == "__main__":
    main()
