# run with: torchrun --nproc-per-node 2 train.py
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from intents import INTENTS, PAD, IntentDataset, collate


class IntentClassifier(nn.Module):
    def __init__(self, vocab_size, n_classes, dim=32, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(2 * hidden, n_classes)

    def forward(self, tokens):
        mask = (tokens != PAD).unsqueeze(-1)
        states, _ = self.gru(self.embed(tokens))
        pooled = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.head(self.drop(pooled))


def validate(model, loader):
    """Accuracy over all ranks: sum the counts, then divide."""
    model.eval()
    stats = torch.zeros(3, dtype=torch.float64)  # loss, correct, seen
    with torch.no_grad():
        for tokens, labels in loader:
            logits = model(tokens)
            stats[0] += F.cross_entropy(logits, labels, reduction="sum").item()
            stats[1] += (logits.argmax(1) == labels).sum().item()
            stats[2] += labels.numel()
    dist.all_reduce(stats, op=dist.ReduceOp.SUM)
    return (stats[0] / stats[2]).item(), (stats[1] / stats[2]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch-size", type=int, default=16, help="per process")
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--clip", type=float, default=1.0)
    args = ap.parse_args()

    dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    seed = int(os.environ.get("SEED", "0"))
    torch.manual_seed(seed)

    train_set = IntentDataset(960, seed=100)
    val_set = IntentDataset(400, seed=200, vocab=train_set.vocab)
    train_sampler = DistributedSampler(train_set, shuffle=True, seed=seed, drop_last=True)
    val_sampler = DistributedSampler(val_set, shuffle=False)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, sampler=train_sampler, collate_fn=collate)
    val_loader = DataLoader(val_set, batch_size=100, sampler=val_sampler, collate_fn=collate)

    model = DDP(IntentClassifier(len(train_set.vocab) + 2, len(INTENTS)))
    torch.manual_seed(seed * 1000 + rank)  # different dropout masks on each rank
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LinearLR(
        optimizer, start_factor=1.0, end_factor=0.1, total_iters=args.epochs * len(train_loader))

    if rank == 0:
        print(f"world size {world}, {len(train_loader)} steps per epoch, vocab {len(train_set.vocab)}", flush=True)

    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)
        model.train()
        running = torch.zeros(1)
        for tokens, labels in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(tokens), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            scheduler.step()
            running += loss.detach()
        dist.all_reduce(running)
        train_loss = running.item() / (world * len(train_loader))
        val_loss, val_acc = validate(model.module, val_loader)

        if rank == 0:
            print(f"epoch={epoch} train_loss={train_loss:.4f} val_loss={val_loss:.4f} val_acc={val_acc:.4f}", flush=True)
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},
                       "intents.pt")
        dist.barrier()

    if rank == 0:
        print(f"final validation accuracy {val_acc:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
