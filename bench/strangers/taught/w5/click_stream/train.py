import glob
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from stream import ClickFiles

STEPS_PER_EPOCH, EPOCHS, BUCKETS = 5000, 10, 2 ** 20


class Wide(nn.Module):
    def __init__(self, dim=16, fields=24):
        super().__init__()
        self.emb = nn.Embedding(BUCKETS, dim)
        nn.init.normal_(self.emb.weight, std=0.01)
        self.mlp = nn.Sequential(nn.Linear(dim * fields, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.mlp(self.emb(x).flatten(1)).squeeze(1)


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    torch.manual_seed(0)
    files = glob.glob(os.path.join(sys.argv[1], "part-*.json.gz"))
    loader = iter(DataLoader(ClickFiles(files, BUCKETS), batch_size=2048, num_workers=4, pin_memory=True))
    model = DDP(Wide().cuda(), device_ids=[local])
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    crit = nn.BCEWithLogitsLoss()
    for epoch in range(EPOCHS):
        total = torch.zeros((), device="cuda")
        for _ in range(STEPS_PER_EPOCH):
            x, y = next(loader)
            x, y = x.cuda(non_blocking=True), y.float().cuda(non_blocking=True)
            loss = crit(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} logloss {total.item() / STEPS_PER_EPOCH / dist.get_world_size():.5f}", flush=True)
            torch.save(model.module.state_dict(), f"wide_{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
