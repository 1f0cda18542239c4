import math
from argparse import ArgumentParser

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from loop import evaluate, train_epoch

PAD, BOS, EOS, VOCAB = 0, 1, 2, 16


def counting(n, gen):
    """Random counting sequences with a step of 1, 2 or 3, modulo 13."""
    rows = []
    for _ in range(n):
        length = int(torch.randint(4, 20, (1,), generator=gen))
        start, step = torch.randint(13, (1,), generator=gen), torch.randint(1, 4, (1,), generator=gen)
        body = (start + step * torch.arange(length)) % 13 + 3
        rows.append(torch.cat([torch.tensor([BOS]), body, torch.tensor([EOS])]))
    return rows


class CausalLM(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.LSTM(dim, 48, batch_first=True)
        self.out = nn.Linear(48, VOCAB)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.out(h).log_softmax(-1)


def main():
    ap = ArgumentParser()
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--micro", type=int, default=8)
    ap.add_argument("--epochs", type=int, default=6)
    args = ap.parse_args()

    torch.manual_seed(15)
    gen = torch.Generator().manual_seed(15)
    collate = lambda rows: pad_sequence(rows, batch_first=True, padding_value=PAD)
    train = DataLoader(counting(500, gen), args.micro, shuffle=True, collate_fn=collate)
    valid = DataLoader(counting(120, gen), 40, collate_fn=collate)

    model = CausalLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    updates = args.epochs * math.ceil(len(train) / args.accum)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=updates)
    for epoch in range(args.epochs):
        tr = train_epoch(model, train, optimizer, scheduler, args.accum, PAD)
        va = evaluate(model, valid, PAD)
        print(f"epoch {epoch}  train ppl {math.exp(tr):.2f}  valid ppl {math.exp(va):.2f}")


if __name__ == "__main__":
    main()
