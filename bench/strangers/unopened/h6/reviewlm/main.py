import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from batching import TokenBudgetBatches, pad_batch
from corpus import VOCAB, reviews


class BagOfStates(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.cls = nn.Linear(2 * dim, 2)

    def forward(self, ids):
        keep = (ids != 0).unsqueeze(-1)
        h, _ = self.rnn(self.emb(ids))
        return self.cls((h * keep).sum(1) / keep.sum(1))


def main(epochs=4, budget=640):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29612")
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=6))
    torch.manual_seed(1)

    rows = reviews(1200, seed=0)
    batches = TokenBudgetBatches([len(r) for r, _ in rows], budget, rank, world)
    loader = DataLoader(rows, batch_sampler=batches, collate_fn=pad_batch)
    net = DistributedDataParallel(BagOfStates(len(VOCAB) + 1))
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)

    for epoch in range(epochs):
        batches.set_epoch(epoch)
        net.train()
        tot, seen, steps = 0.0, 0, 0
        for ids, label in loader:
            loss = nn.functional.cross_entropy(net(ids), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(label)
            seen += len(label)
            steps += 1
        print(f"rank {rank} epoch {epoch}: {steps} steps, {seen} reviews, loss {tot / seen:.4f}", flush=True)

    test_ids, test_label = pad_batch(reviews(300, seed=1))
    net.eval()
    with torch.no_grad():
        acc = (net.module(test_ids).argmax(1) == test_label).float().mean()
    if rank == 0:
        print(f"test accuracy {acc:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
