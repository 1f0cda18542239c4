import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader

from dataset import BANDS, CLASSES, Patches, fake_patches


class PatchCNN(nn.Module):
    def __init__(self, n_bands, n_classes, width=24):
        super().__init__()
        self.conv1 = nn.Conv2d(n_bands, width, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width * 2, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(width * 2)
        self.pool = nn.MaxPool2d(2)
        self.act = nn.ReLU()
        self.gap = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(width * 2, n_classes)

    def forward(self, x):
        x = self.pool(self.act(self.bn1(self.conv1(x))))
        x = self.pool(self.act(self.bn2(self.conv2(x))))
        return self.fc(self.gap(x).flatten(1))


def accuracy(model, loader):
    model.eval()
    good = total = 0
    with torch.inference_mode():
        for x, y in loader:
            good += (model(x).argmax(1) == y).sum().item()
            total += y.numel()
    return good / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=1e-3)
    a = ap.parse_args()
    torch.manual_seed(0)
    x, y = fake_patches(600)
    stats = x.mean(axis=(0, 1, 2)), x.std(axis=(0, 1, 2))
    train = DataLoader(Patches(x, y, *stats, train=True), batch_size=32, shuffle=True)
    test = DataLoader(Patches(*fake_patches(150, seed=1), *stats), batch_size=64)
    model = PatchCNN(len(BANDS), len(CLASSES))
    opt = optim.Adam(model.parameters(), lr=a.lr)
    ce = nn.CrossEntropyLoss()
    for e in range(a.epochs):
        model.train()
        for x, y in train:
            opt.zero_grad()
            loss = ce(model(x), y)
            loss.backward()
            opt.step()
        print(e, round(loss.item(), 4), "acc", accuracy(model, test))


if __name__ == "__main__":
    main()
