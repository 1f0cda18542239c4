# ResNet-20 on CIFAR-10, settings of He et al. (section 4.2)
import os
import pickle
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

ROOT = os.environ.get("CIFAR_ROOT", "cifar-10-batches-py")


class Cifar(Dataset):
    def __init__(self, files, augment):
        xs, ys = [], []
        for f in files:
            with open(os.path.join(ROOT, f), "rb") as fh:
                d = pickle.load(fh, encoding="bytes")
            xs.append(d[b"data"].reshape(-1, 3, 32, 32))
            ys += d[b"labels"]
        self.x = np.concatenate(xs)
        self.y = ys
        self.augment = augment
        self.mean = torch.tensor([0.4914, 0.4822, 0.4465])[:, None, None]
        self.std = torch.tensor([0.2470, 0.2435, 0.2616])[:, None, None]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = (torch.from_numpy(self.x[i]).float() / 255 - self.mean) / self.std
        if self.augment:
            img = F.pad(img, (4, 4, 4, 4))
            r, c = np.random.randint(0, 9, 2)
            img = img[:, r:r + 32, c:c + 32]
            if np.random.rand() < 0.5:
                img = img.flip(2)
        return img, self.y[i]


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.c1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(c_out)
        self.c2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(c_out)
        self.short = nn.Sequential()
        if stride != 1 or c_in != c_out:
            self.short = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        out = self.b2(self.c2(F.relu(self.b1(self.c1(x)))))
        return F.relu(out + self.short(x))


def resnet20():
    layers, c = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for k in range(3):
            layers.append(Block(c, width, stride if k == 0 else 1))
            c = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def make_optimizer(net, lr, weight_decay, momentum):
    return torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay)


def test(net, loader, dev):
    net.eval()
    good = 0
    with torch.no_grad():
        for x, y in loader:
            good += (net(x.to(dev)).argmax(1).cpu() == y).sum().item()
    return 100.0 * good / len(loader.dataset)


def main(epochs=164):
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    train_dl = DataLoader(Cifar([f"data_batch_{k}" for k in range(1, 6)], True), 128, shuffle=True, num_workers=4,
                          worker_init_fn=lambda w: np.random.seed((torch.initial_seed() + w) % 2 ** 32))
    test_dl = DataLoader(Cifar(["test_batch"], False), 500)
    net = resnet20().to(dev)
    optimizer = make_optimizer(net, 0.1, 0.9, 1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [int(epochs * 0.5), int(epochs * 0.75)], gamma=0.1)
    for epoch in range(epochs):
        net.train()
        running = 0.0
        for x, y in train_dl:
            x, y = x.to(dev), y.to(dev)
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        print(f"{epoch} loss {running / len(train_dl):.3f} test {test(net, test_dl, dev):.2f}%", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 164)
