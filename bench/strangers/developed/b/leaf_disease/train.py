import argparse
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset

from dataset import LeafDataset
from prepare import write_dump


def parse():
    p = argparse.ArgumentParser(description="Blattkrankheiten / leaf disease classifier")
    p.add_argument("--root", default=None, help="folder with photos/ and labels.csv")
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=24)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=21)
    return p.parse_args()


def flip(img):
    return img.flip(-1) if torch.rand(()) < 0.5 else img


def accuracy(net, loader):
    net.eval()
    right = 0
    with torch.no_grad():
        for img, lab in loader:
            right += (net(img).argmax(1) == lab).sum().item()
    return right / len(loader.dataset)


def main(args):
    torch.manual_seed(args.seed)
    root = args.root or write_dump(tempfile.mkdtemp())
    order = torch.randperm(len(LeafDataset(root)), generator=torch.Generator().manual_seed(args.seed)).tolist()
    cut = int(0.8 * len(order))
    train_dl = DataLoader(Subset(LeafDataset(root, flip), order[:cut]), args.batch_size, shuffle=True)
    val_dl = DataLoader(Subset(LeafDataset(root), order[cut:]), args.batch_size)

    net = nn.Sequential(
        nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(24 * 16, 3),
    )
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    crit = nn.CrossEntropyLoss()
    for ep in range(1, args.epochs + 1):
        net.train()
        for img, lab in train_dl:
            opt.zero_grad()
            loss = crit(net(img), lab)
            loss.backward()
            opt.step()
        print(f"epoch {ep}: last loss {loss.item():.3f}, val accuracy {accuracy(net, val_dl):.3f}")


if __name__ == "__main__":
    main(parse())
