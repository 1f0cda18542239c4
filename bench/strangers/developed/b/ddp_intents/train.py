"""Intent classification of spoken commands.

    torchrun --nproc_per_node=4 train.py
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from sampling import LengthBuckets

INTENTS, VOCAB, PAD = 6, 80, 0


class Commands(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        cue = torch.randperm(VOCAB - 1, generator=torch.Generator().manual_seed(0))[:INTENTS * 4].view(INTENTS, 4) + 1
        self.rows = []
        for _ in range(n):
            intent = int(torch.randint(0, INTENTS, (), generator=g))
            words = torch.randint(1, VOCAB, (int(torch.randint(4, 20, (), generator=g)),), generator=g)
            words[torch.randperm(len(words), generator=g)[:2]] = cue[intent][torch.randint(0, 4, (2,), generator=g)]
            self.rows.append((words, intent))
        self.lengths = [len(w) for w, _ in self.rows]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    words, intents = zip(*rows)
    return pad_sequence(words, batch_first=True, padding_value=PAD), torch.tensor(intents)


class BagOfWords(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.emb = nn.EmbeddingBag(VOCAB, d, mode="mean", padding_idx=PAD)
        self.mlp = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Dropout(0.1), nn.Linear(d, INTENTS))

    def forward(self, ids):
        return self.mlp(self.emb(ids))


def main():
    distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
    rank = 0
    if distributed:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")

    torch.manual_seed(55)
    train, valid = Commands(800, 1), Commands(200, 2)
    buckets = LengthBuckets(train.lengths, batch_size=32, seed=55)
    loader = DataLoader(train, batch_sampler=buckets, collate_fn=collate)
    val_loader = DataLoader(valid, 100, collate_fn=collate)

    net = BagOfWords().to(device)
    if distributed:
        net = DDP(net, device_ids=[device.index] if device.type == "cuda" else None)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    torch.manual_seed(55 + rank)  # different dropout on each process

    for epoch in range(5):
        buckets.set_epoch(epoch)
        net.train()
        for ids, intent in loader:
            loss = nn.functional.cross_entropy(net(ids.to(device)), intent.to(device))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        if rank == 0:
            core = net.module if distributed else net
            core.eval()
            with torch.no_grad():
                ok = sum((core(i.to(device)).argmax(1).cpu() == t).sum().item() for i, t in val_loader)
            print(f"epoch {epoch} loss {loss.item():.3f} val acc {ok / len(valid):.3f}", flush=True)
        if distributed:
            dist.barrier()
    if distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
