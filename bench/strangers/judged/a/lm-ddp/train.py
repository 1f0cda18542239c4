"""Small causal LM. Single process or `torchrun --nproc_per_node=N train.py`; bf16/fp16 on GPUs.
Gradient accumulation over micro-batches with no_sync, loss normalised by the number of tokens of the whole update."""
import contextlib
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
LOCAL = int(os.environ.get("LOCAL_RANK", 0))
CUDA = torch.cuda.is_available()
VOCAB, CTX, PAD = 32, 24, -100
ACCUM, MICRO, UPDATES, WARMUP, PEAK = 4, 8, 150, 15, 5e-3


class LM(nn.Module):
    def __init__(self, d=48, heads=4, layers=2):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, d), nn.Embedding(CTX, d)
        mk = lambda: nn.TransformerEncoderLayer(d, heads, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList(mk() for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, VOCAB, bias=False)
        self.head.weight = self.tok.weight          # tied
        for e in (self.tok, self.pos):
            nn.init.normal_(e.weight, std=0.1)
        self.register_buffer("mask", torch.triu(torch.full((CTX, CTX), float("-inf")), 1), persistent=False)

    def forward(self, ids):
        n = ids.size(1)
        h = self.tok(ids) + self.pos.weight[:n]
        for b in self.blocks:
            h = b(h, src_mask=self.mask[:n, :n], is_causal=True)
        return self.head(self.norm(h))


def batch(gen, device):
    """arithmetic progressions modulo VOCAB of random lengths"""
    start = torch.randint(0, VOCAB, (MICRO, 1), generator=gen)
    stride = torch.randint(1, 3, (MICRO, 1), generator=gen)
    seq = (start + stride * torch.arange(CTX + 1)) % VOCAB
    length = torch.randint(CTX // 2, CTX + 1, (MICRO, 1), generator=gen)
    target = seq[:, 1:].masked_fill(torch.arange(CTX) >= length, PAD)
    return seq[:, :-1].to(device), target.to(device)


def lr_at(u):
    if u < WARMUP:
        return PEAK * (u + 1) / WARMUP
    return 0.5 * PEAK * (1 + math.cos(math.pi * (u - WARMUP) / (UPDATES - WARMUP)))


def main():
    if WORLD > 1:
        dist.init_process_group("nccl" if CUDA else "gloo")
    device = torch.device("cuda", LOCAL) if CUDA else torch.device("cpu")
    torch.manual_seed(50)                            # same weights everywhere
    raw = LM().to(device)
    model = DDP(raw, device_ids=[LOCAL] if CUDA else None) if WORLD > 1 else raw
    gen = torch.Generator().manual_seed(50 + RANK)   # other data on every rank
    held = [batch(torch.Generator().manual_seed(10**6 + i), device) for i in range(4)]

    half = torch.float16 if CUDA and not torch.cuda.is_bf16_supported() else torch.bfloat16
    amp = lambda: torch.autocast(device.type, dtype=half, enabled=CUDA)
    scaler = torch.amp.GradScaler(device.type, enabled=half is torch.float16)
    opt = torch.optim.AdamW(raw.parameters(), lr=PEAK, betas=(0.9, 0.95), weight_decay=0.1)

    for u in range(UPDATES):
        model.train()
        for g in opt.param_groups:
            g["lr"] = lr_at(u)
        micro = [batch(gen, device) for _ in range(ACCUM)]
        tokens = sum((t != PAD).sum() for _, t in micro)
        if WORLD > 1:
            dist.all_reduce(tokens)
        opt.zero_grad(set_to_none=True)
        shown = 0.0
        for i, (x, t) in enumerate(micro):
            last = i == ACCUM - 1
            with contextlib.nullcontext() if last or WORLD == 1 else model.no_sync():
                with amp():
                    logits = model(x)
                    loss = F.cross_entropy(logits.flatten(0, 1).float(), t.flatten(), ignore_index=PAD, reduction="sum")
                # DDP averages over ranks, hence the factor WORLD
                loss = loss * WORLD / tokens
                scaler.scale(loss).backward()
            shown += loss.item()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(raw.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()

        if (u + 1) % 50 == 0 and RANK == 0:
            raw.eval()
            with torch.no_grad(), amp():
                v = sum(F.cross_entropy(raw(x).flatten(0, 1).float(), t.flatten(), ignore_index=PAD) for x, t in held) / len(held)
            print(f"update {u + 1} loss {shown:.3f} held-out {v.item():.3f}")

    if WORLD > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
