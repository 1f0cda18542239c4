#!/usr/bin/env python
"""Word-level language model with Accelerate.  accelerate launch train.py --vocab 50257 --seq-len 512 ..."""
import argparse
import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=120)
    p.add_argument("--seq-len", type=int, default=24)
    p.add_argument("--d-model", type=int, default=48)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--accum", type=int, default=2)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=13)
    return p.parse_args()


def markov_text(n, length, vocab, seed):
    g = torch.Generator().manual_seed(seed)
    nxt = torch.randint(0, vocab, (vocab, 3), generator=torch.Generator().manual_seed(0))
    seqs = torch.empty(n, length + 1, dtype=torch.long)
    seqs[:, 0] = torch.randint(0, vocab, (n,), generator=g)
    for t in range(length):
        pick = torch.randint(0, 3, (n,), generator=g)
        seqs[:, t + 1] = nxt[seqs[:, t], pick]
    return TensorDataset(seqs)


class GRULM(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.head(self.drop(h))


def evaluate(accelerator, net, loader):
    net.eval()
    logits, targets = [], []
    with torch.inference_mode():
        for (seq,) in loader:
            out = net(seq[:, :-1])
            out, gold = accelerator.gather_for_metrics((out, seq[:, 1:].contiguous()))
            logits.append(out)
            targets.append(gold)
        logits, targets = torch.cat(logits), torch.cat(targets)
        nll = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        top5 = (logits.topk(5, -1).indices == targets.unsqueeze(-1)).any(-1).float().mean()
    return math.exp(nll.item()), top5.item()


def main():
    args = parse_args()
    set_seed(args.seed)
    accelerator = Accelerator(gradient_accumulation_steps=args.accum)
    train = DataLoader(markov_text(600, args.seq_len, args.vocab, 1), args.batch_size, shuffle=True)
    valid = DataLoader(markov_text(120, args.seq_len, args.vocab, 2), args.batch_size)
    net = GRULM(args.vocab, args.d_model)
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr)
    net, opt, train, valid = accelerator.prepare(net, opt, train, valid)
    for epoch in range(args.epochs):
        net.train()
        for (seq,) in train:
            with accelerator.accumulate(net):
                out = net(seq[:, :-1])
                loss = nn.functional.cross_entropy(out.flatten(0, 1), seq[:, 1:].flatten())
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
        ppl, top5 = evaluate(accelerator, net, valid)
        accelerator.print(f"epoch {epoch}: ppl {ppl:.2f} top-5 {top5:.3f}")


if __name__ == "__main__":
    main()
