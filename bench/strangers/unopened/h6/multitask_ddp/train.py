import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from heads import MultiTask
from sensors import TYPES, batch


def main(steps=240):
    for k, v in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29701"}.items():
        os.environ.setdefault(k, v)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(MultiTask(8, TYPES), find_unused_parameters=True)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    rng = np.random.default_rng(100 + rank)
    for step in range(1, steps + 1):
        kind = TYPES[(step + rank) % len(TYPES)]
        x, y = batch(kind, 64, rng)
        loss = F.mse_loss(model(x, kind), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 60 == 0 and rank == 0:
            probe = np.random.default_rng(7)
            with torch.no_grad():
                errs = {}
                for t in TYPES:
                    px, py = batch(t, 256, probe)
                    errs[t] = round(F.mse_loss(model.module(px, t), py).item(), 4)
            print(f"step {step} {errs}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
