import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

IGNORE = -100
SUBJ, VERB, OBJ = "he she they we".split(), "sees finds wants leaves".split(), "it home nothing everyone".split()
WORDS = ["<pad>", "<bos>", "<eos>", "and"] + SUBJ + VERB + OBJ
ID = {w: i for i, w in enumerate(WORDS)}


def line(rnd):
    out = ["<bos>"]
    for k in range(rnd.randint(1, 3)):
        if k:
            out.append("and")
        i = rnd.randrange(4)
        out += [SUBJ[i], VERB[(i + k) % 4], OBJ[rnd.randrange(4)]]
    return [ID[w] for w in out + ["<eos>"]]


def collate(rows):
    n = max(map(len, rows))
    x = torch.tensor([r + [0] * (n - len(r)) for r in rows])
    y = torch.tensor([r + [IGNORE] * (n - len(r)) for r in rows])
    return x[:, :-1], y[:, 1:]


class TinyGPT(nn.Module):
    def __init__(self, vocab, dim=48, heads=4, layers=2, ctx=16):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(ctx, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, vocab)

    def forward(self, x):
        t = x.size(1)
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        h = self.blocks(self.tok(x) + self.pos.weight[:t], mask=mask)
        return self.out(self.norm(h))


def chunks(loader, size):
    group = []
    for b in loader:
        group.append(b)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--micro", type=int, default=8)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    torch.manual_seed(1)
    train = [line(random.Random(i)) for i in range(600)]
    val = [line(random.Random(10_000 + i)) for i in range(150)]
    train_dl = DataLoader(train, args.micro, shuffle=True, collate_fn=collate)
    val_dl = DataLoader(val, 50, collate_fn=collate)
    model = TinyGPT(len(WORDS))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95))
    for epoch in range(args.epochs):
        model.train()
        for group in chunks(train_dl, args.accum):
            tokens = sum((y != IGNORE).sum().item() for _, y in group)
            opt.zero_grad(set_to_none=True)
            for x, y in group:
                nll = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=IGNORE, reduction="sum")
                (nll / tokens).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        model.eval()
        total = count = 0
        with torch.no_grad():
            for x, y in val_dl:
                total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=IGNORE, reduction="sum").item()
                count += (y != IGNORE).sum().item()
        print(f"epoch {epoch} val nll/token {total / count:.4f}")


if __name__ == "__main__":
    main()
