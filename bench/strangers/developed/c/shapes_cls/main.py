import argparse
from functools import partial

import torch
from torch import nn, optim
from torch.utils.data import DataLoader

from dataset import KINDS, Shapes

conv = partial(nn.Conv2d, kernel_size=3, padding=1, bias=False)


def build_net(widths=(16, 32)):
    seq, c = [], 3
    for w in widths:
        seq += [conv(c, w), nn.BatchNorm2d(w), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        c = w
    return nn.Sequential(*seq, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, len(KINDS)))


def to_device(batch, device):
    """HWC image batch from the loader -> what the convolutions want."""
    x, y = batch
    return x.permute(0, 3, 1, 2).contiguous().to(device), y.to(device)


def train_epoch(net, loader, opt, crit, device):
    net.train()
    tot = 0.0
    for batch in loader:
        x, y = to_device(batch, device)
        opt.zero_grad()
        loss = crit(net(x), y)
        loss.backward()
        opt.step()
        tot += loss.item()
    return tot / len(loader)


@torch.inference_mode()
def test(net, loader, device):
    net.eval()
    hit = tot = 0
    for batch in loader:
        x, y = to_device(batch, device)
        hit += (net(x).argmax(1) == y).sum().item()
        tot += len(y)
    return hit / tot


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=0)
    cfg = ap.parse_args()

    torch.manual_seed(cfg.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_dl = DataLoader(Shapes(480, seed=1, augment=True), batch_size=32, shuffle=True, drop_last=True)
    test_dl = DataLoader(Shapes(120, seed=2), batch_size=60)
    net = build_net().to(device)
    opt = optim.Adam(net.parameters(), lr=cfg.lr)
    crit = nn.CrossEntropyLoss(label_smoothing=0.05)
    for e in range(cfg.epochs):
        print(e, train_epoch(net, train_dl, opt, crit, device), test(net, test_dl, device))
