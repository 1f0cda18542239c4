import argparse
import random

import torch
from torch import nn

from model import Reverser
from optim import NoamOpt


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=12)
    p.add_argument("--length", type=int, default=8)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--warmup", type=int, default=60)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


def batches(n, batch, length, vocab, gen):
    for _ in range(n):
        src = torch.randint(1, vocab, (batch, length), generator=gen)
        yield src, src.flip(1)


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    hit = total = 0
    for src, tgt in data:
        pred = model(src).argmax(-1)
        hit += (pred == tgt).sum().item()
        total += tgt.numel()
    model.train()
    return hit / total


def main():
    args = parse()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    train_gen = torch.Generator().manual_seed(args.seed)
    held_gen = torch.Generator().manual_seed(args.seed + 1000)
    held = list(batches(4, args.batch, args.length, args.vocab, held_gen))

    model = Reverser(args.vocab)
    opt = NoamOpt(torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9),
                  model.d_model, factor=0.5, warmup=args.warmup)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

    model.train()
    stream = batches(args.steps, args.batch, args.length, args.vocab, train_gen)
    for i, (src, tgt) in enumerate(stream, 1):
        logits = model(src)
        loss = criterion(logits.reshape(-1, args.vocab), tgt.reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if i % 50 == 0:
            print(f"step {i:4d}  lr {opt.rate():.2e}  loss {loss.item():.3f}  held-out acc {accuracy(model, held):.3f}")

    torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, "/tmp/reverser.pt")


if __name__ == "__main__":
    main()
