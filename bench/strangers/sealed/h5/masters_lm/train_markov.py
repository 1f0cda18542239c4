"""A bigram-ish language model that lives in bfloat16 on the device."""
import argparse

import torch
from torch import nn

from master import MasterSGD


class ContextMLP(nn.Module):
    def __init__(self, vocab, context, dim=24, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.hid = nn.Linear(context * dim, hidden)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, idx):
        return self.out(torch.tanh(self.hid(self.emb(idx).flatten(1))))


def markov_tokens(n, vocab, gen):
    table = torch.softmax(3 * torch.randn(vocab, vocab, generator=gen), -1)
    seq = [0]
    for _ in range(n - 1):
        seq.append(int(torch.multinomial(table[seq[-1]], 1, generator=gen)))
    return torch.tensor(seq), table


def main(a):
    torch.manual_seed(a.seed)
    gen = torch.Generator().manual_seed(a.seed)
    tokens, table = markov_tokens(6000, a.vocab, gen)
    windows = tokens.unfold(0, a.context + 1, 1)
    train, test = windows[:5000], windows[5000:]
    net = ContextMLP(a.vocab, a.context).to(torch.bfloat16)
    opt = MasterSGD(net.parameters(), lr=a.lr)
    for epoch in range(a.epochs):
        total = 0.0
        chunks = torch.randperm(len(train), generator=gen).split(50)
        for idx in chunks:
            rows = train[idx]
            loss = nn.functional.cross_entropy(net(rows[:, :-1]).float(), rows[:, -1])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        with torch.no_grad():
            held = nn.functional.cross_entropy(net(test[:, :-1]).float(), test[:, -1]).item()
        print(f"epoch {epoch}  train {total / len(chunks):.4f}  test {held:.4f}")
    entropy = torch.special.entr(table).sum(-1)[tokens].mean().item()
    print(f"entropy of the source {entropy:.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=20)
    p.add_argument("--context", type=int, default=3)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.03)
    p.add_argument("--seed", type=int, default=0)
    main(p.parse_args())
