import argparse

import torch
import torch.nn.functional as F

from digits_data import jitter, load
from nets import DigitNet, OldScannerNet
from weights import export, warm_start


def train_source(archive, epochs, path):
    images, labels = archive
    gen = torch.Generator().manual_seed(0)
    net = OldScannerNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(epochs):
        hits = 0
        for idx in torch.randperm(len(images), generator=gen).split(64):
            logits = net(jitter(images[idx], gen))
            loss = F.cross_entropy(logits, labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            hits += (logits.argmax(1) == labels[idx]).sum().item()
        print(f"[old scanner] epoch {epoch} loss {loss.item():.3f} acc {hits / len(images):.3f}")
    export(net, path)


def finetune(net, few, test, steps):
    x, y = few
    net.features.requires_grad_(False)
    net.eval()
    opt = torch.optim.Adam(net.classifier.parameters(), lr=1e-2)
    for step in range(steps):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        acc = (net(test[0]).argmax(1) == test[1]).float().mean().item()
    print(f"[new scanner] train loss {loss.item():.3f} test acc {acc:.3f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--weights", default="old_scanner.pt")
    args = ap.parse_args()
    torch.manual_seed(0)
    archive, few, test = load()
    train_source(archive, args.epochs, args.weights)
    finetune(warm_start(DigitNet(), args.weights), few, test, args.steps)
