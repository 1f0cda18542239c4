import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from config import RigConfig
from data import make_splits
from experts import RigNet


def parse():
    cfg = RigConfig()
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=cfg.epochs)
    ap.add_argument("--lr", type=float, default=cfg.lr)
    ns = ap.parse_args()
    cfg.epochs, cfg.lr = ns.epochs, ns.lr
    return cfg


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    hits = total = 0
    for readings, y in loader:
        hits += (net(readings).argmax(1) == y).sum().item()
        total += len(y)
    return hits / total


def main():
    cfg = parse()
    torch.manual_seed(cfg.seed)
    train_set, test_set = make_splits(cfg)
    train_loader = DataLoader(train_set, cfg.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, cfg.batch_size)

    net = RigNet(cfg)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr, weight_decay=1e-4)

    for epoch in range(cfg.epochs):
        net.train()
        running = 0.0
        for readings, y in train_loader:
            opt.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(readings), y)
            loss.backward()
            opt.step()
            running += loss.item() * len(y)
        print(f"epoch {epoch}  train loss {running / len(train_set):.4f}")

    print(f"test accuracy {accuracy(net, test_loader):.3f}")


if __name__ == "__main__":
    main()
