import argparse

import torch
import torch.nn.functional as F

from memory_lm import MemoryLM
from stream import bracket_text, columns


def chunks(table, length):
    for i in range(0, table.size(1) - 1 - length, length):
        yield table[:, i:i + length], table[:, i + 1:i + 1 + length]


@torch.no_grad()
def bits(model, table, length):
    model.eval()
    model.forget()
    total = n = 0
    for x, y in chunks(table, length):
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
        n += y.numel()
    return total / n / 0.6931


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=40)
    ap.add_argument("--chunk", type=int, default=16)
    ap.add_argument("--span", type=int, default=2, help="chunks per weight update")
    ap.add_argument("--epochs", type=int, default=4)
    a = ap.parse_args()
    torch.manual_seed(0)
    vocab = {c: i for i, c in enumerate("()[]{}ab")}
    train = columns(bracket_text(16000, 0), vocab, 20)
    valid = columns(bracket_text(4000, 1), vocab, 20)
    model = MemoryLM(len(vocab), a.dim)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    print(f"start {bits(model, valid, a.chunk):.3f} bits")
    for epoch in range(a.epochs):
        model.train()
        model.forget()
        pending = 0.0
        for k, (x, y) in enumerate(chunks(train, a.chunk), start=1):
            pending = pending + F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            if k % a.span == 0:
                opt.zero_grad()
                (pending / a.span).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                model.cut()
                pending = 0.0
        print(f"epoch {epoch} valid {bits(model, valid, a.chunk):.3f} bits")


if __name__ == "__main__":
    main()
