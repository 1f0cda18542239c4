"""torchrun --nproc_per_node 8 translate.py corpus.de-en.pt"""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from batching import TokenBudgetSampler, pad

PAD, BOS, EOS, VOCAB = 0, 1, 2, 32000


class MT(nn.Module):
    def __init__(self, d=512):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.pos = nn.Embedding(512, d)
        self.core = nn.Transformer(d, 8, 6, 6, 2048, 0.1, batch_first=True, norm_first=True)
        self.out = nn.Linear(d, VOCAB)

    def embed(self, x):
        return self.emb(x) * self.emb.embedding_dim ** 0.5 + self.pos(torch.arange(x.size(1), device=x.device))

    def forward(self, src, tgt):
        causal = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device), 1)
        sp, tp = src == PAD, tgt == PAD
        return self.out(self.core(self.embed(src), self.embed(tgt), tgt_mask=causal, src_key_padding_mask=sp,
                                  tgt_key_padding_mask=tp, memory_key_padding_mask=sp))


def collate(pairs):
    src = pad([s + [EOS] for s, _ in pairs])
    tgt = pad([[BOS] + t + [EOS] for _, t in pairs])
    return src, tgt


def rate(step, d=512, warmup=4000):
    step = max(step, 1)
    return d ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)


def main():
    dist.init_process_group("nccl")
    rank, world, local = dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    torch.manual_seed(0)
    pairs = [(s, t) for s, t in torch.load(sys.argv[1]) if 0 < len(s) < 250 and 0 < len(t) < 250]
    sampler = TokenBudgetSampler([max(len(s), len(t)) + 2 for s, t in pairs], 6000, rank, world)
    loader = DataLoader(pairs, batch_sampler=sampler, collate_fn=collate, num_workers=3, pin_memory=True)

    model = DDP(MT().cuda(), device_ids=[local])
    crit = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    opt = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, rate)
    step = 0
    for epoch in range(12):
        sampler.set_epoch(epoch)
        model.train()
        for src, tgt in loader:
            src, tgt = src.cuda(non_blocking=True), tgt.cuda(non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16):
                logits = model(src, tgt[:, :-1])
                loss = crit(logits.flatten(0, 1).float(), tgt[:, 1:].flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            if rank == 0 and step % 100 == 0:
                print(f"{epoch} {step} {loss.item():.3f} lr {sched.get_last_lr()[0]:.2e}", flush=True)
        if rank == 0:
            torch.save(model.module.state_dict(), f"mt_{epoch:02d}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
