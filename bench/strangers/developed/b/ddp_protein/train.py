import os

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from distributed import process_group
from loop import evaluate, on_epoch_start, train_epoch

AMINO, LENGTH, FOLDS = 20, 40, 4


def sequences(n, seed):
    g = torch.Generator().manual_seed(seed)
    motifs = torch.randint(0, AMINO, (FOLDS, 6), generator=torch.Generator().manual_seed(0))
    seq = torch.randint(0, AMINO, (n, LENGTH), generator=g)
    fold = torch.randint(0, FOLDS, (n,), generator=g)
    start = torch.randint(0, LENGTH - 6, (n,), generator=g)
    for i in range(n):
        seq[i, start[i]:start[i] + 6] = motifs[fold[i]]
    return TensorDataset(seq, fold)


class MotifCNN(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.emb = nn.Embedding(AMINO, d)
        self.conv = nn.Conv1d(d, 32, 6)
        self.out = nn.Sequential(nn.Dropout(0.2), nn.Linear(32, FOLDS))

    def forward(self, seq):
        return self.out(self.conv(self.emb(seq).transpose(1, 2)).relu().amax(-1))


def main(epochs=6, batch=32, seed=101):
    with process_group() as (rank, world):
        torch.manual_seed(seed)
        local = int(os.environ.get("LOCAL_RANK", 0))
        device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
        train_set, val_set = sequences(640, 1), sequences(160, 2)
        train_sampler = DistributedSampler(train_set, world, rank, shuffle=True, seed=seed)
        val_sampler = DistributedSampler(val_set, world, rank, shuffle=False)
        train = DataLoader(train_set, batch, sampler=train_sampler)
        val = DataLoader(val_set, 80, sampler=val_sampler)
        net = DistributedDataParallel(
            MotifCNN().to(device), device_ids=[local] if device.type == "cuda" else None
        )
        opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
        for epoch in range(epochs):
            on_epoch_start([train, val], epoch)
            loss = train_epoch(net, opt, train, device)
            acc = evaluate(net, val, device)
            if rank == 0:
                print(f"epoch {epoch} loss {loss:.4f} acc {acc:.4f}", flush=True)


if __name__ == "__main__":
    main()
