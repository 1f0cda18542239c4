"""Byte-level GPT, step based. Killed jobs continue with --resume.

python train.py --out run1 --max-steps 60 ; python train.py --out run1 --max-steps 120 --resume
"""
import argparse
import math
import os
import random
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

WORDS = "the quick brown fox jumps over lazy dog while seven wizards quietly bake xylophone jam .".split()
TEXT = " ".join(random.Random(0).choices(WORDS, k=2200)).encode()


class Blocks(Dataset):
    def __init__(self, data, length):
        self.data, self.length = torch.tensor(list(data)), length

    def __len__(self):
        return (len(self.data) - 1) // self.length

    def __getitem__(self, i):
        s = i * self.length
        return self.data[s:s + self.length], self.data[s + 1:s + self.length + 1]


class GPT(nn.Module):
    def __init__(self, d=48, heads=4, layers=2, ctx=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(256, d), nn.Embedding(ctx, d)
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, 0.1, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d, 256)

    def forward(self, x):
        t = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.body(self.tok(x) + self.pos(torch.arange(t)), mask=mask, is_causal=True))


def forever(loader):
    while True:
        yield from loader


def lr_factor(step, warm=20, horizon=200):
    return min(1.0, (step + 1) / warm) * (0.1 + 0.45 * (1 + math.cos(math.pi * min(step, horizon) / horizon)))


def save(path, **state):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


@torch.no_grad()
def valid_loss(net, loader):
    net.eval()
    tot = n = 0
    for x, y in loader:
        tot += F.cross_entropy(net(x).flatten(0, 1), y.flatten(), reduction="sum").item()
        n += y.numel()
    net.train()
    return tot / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default=None)
    ap.add_argument("--max-steps", type=int, default=60)
    ap.add_argument("--save-every", type=int, default=20)
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    out = args.out or tempfile.mkdtemp()
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "state.pt")

    torch.manual_seed(args.seed)
    cut = int(0.9 * len(TEXT))
    train_set, val_set = Blocks(TEXT[:cut], 32), Blocks(TEXT[cut:], 32)
    order = torch.Generator().manual_seed(args.seed)
    train = DataLoader(train_set, 8, sampler=RandomSampler(train_set, generator=order), drop_last=True)
    val = DataLoader(val_set, 16)

    net = GPT()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_factor)
    step = 0
    if args.resume:
        ck = torch.load(path, weights_only=True)
        net.load_state_dict(ck["net"])
        opt.load_state_dict(ck["opt"])
        sched.load_state_dict(ck["sched"])
        torch.set_rng_state(ck["rng"])
        step = ck["step"]
        print(f"continuing from step {step}")

    net.train()
    batches = forever(train)
    while step < args.max_steps:
        x, y = next(batches)
        loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        step += 1
        if step % args.save_every == 0:
            print(f"step {step} loss {loss.item():.3f} valid {valid_loss(net, val):.3f}")
            save(
                path, net=net.state_dict(), opt=opt.state_dict(), sched=sched.state_dict(),
                rng=torch.get_rng_state(), step=step,
            )


if __name__ == "__main__":
    main()
