import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from model import Reverser
from schedule import WarmupOptim


def make_split(n, length, vocab, gen):
    src = torch.randint(1, vocab, (n, length), generator=gen)
    return TensorDataset(src, src.flip(1))


@torch.no_grad()
def evaluate(net, loader, criterion):
    net.eval()
    loss, hits, total = 0.0, 0, 0
    for src, tgt in loader:
        logits = net(src)
        loss += criterion(logits.flatten(0, 1), tgt.flatten()).item() * tgt.numel()
        hits += (logits.argmax(-1) == tgt).sum().item()
        total += tgt.numel()
    return loss / total, hits / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--vocab", type=int, default=12)
    ap.add_argument("--length", type=int, default=8)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    train_dl = DataLoader(make_split(2048, args.length, args.vocab, gen), args.batch_size, shuffle=True)
    valid_dl = DataLoader(make_split(256, args.length, args.vocab, gen), 128)

    net = Reverser(args.vocab)
    criterion = nn.CrossEntropyLoss()
    base = torch.optim.Adam(net.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    optim = WarmupOptim(base, net.dim, warmup=60, factor=0.2)

    for epoch in range(1, args.epochs + 1):
        net.train()
        running = 0.0
        for src, tgt in train_dl:
            optim.zero_grad()
            loss = criterion(net(src).flatten(0, 1), tgt.flatten())
            loss.backward()
            optim.step()
            running += loss.item()
        val_loss, val_acc = evaluate(net, valid_dl, criterion)
        print(f"epoch {epoch}  train {running / len(train_dl):.4f}  valid {val_loss:.4f}  "
              f"acc {val_acc:.3f}  lr {optim.last_rate:.2e}")


if __name__ == "__main__":
    main()
