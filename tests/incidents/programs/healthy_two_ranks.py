"""Two processes train together over gloo; the log holds both, prefixed as torchrun does."""

import tempfile
from pathlib import Path

import torch
from torch import distributed, multiprocessing
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from training import digits, evaluate, mlp, seed


def work(rank: int, meeting: str, folder: str) -> None:
    distributed.init_process_group("gloo", f"file://{meeting}", world_size=2, rank=rank)
    seed(18)
    data, model = digits(), DistributedDataParallel(mlp(64, 48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + rank)
    x, y = data.x[rank::2], data.y[rank::2]
    lines = [f"rank {rank} of 2 ready, backend gloo, {len(x)} examples"]
    for step in range(1, 401):
        batch = torch.randint(len(x), (16,))
        loss = functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            lines.append(f"step {step:4d} | loss {loss:.4f} | lr 0.1000")
        if step % 100 == 0 and rank == 0:
            val_loss, accuracy = evaluate(model.module, data.x_val, data.y_val)
            lines.append(f"step {step:4d} | val loss {val_loss:.4f} | val acc {accuracy:.4f}")
    Path(folder, str(rank)).write_text("\n".join(lines))
    distributed.destroy_process_group()


def make(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        multiprocessing.spawn(work, (f"{scratch}/meeting", scratch), nprocs=2)
        logs = [Path(scratch, str(rank)).read_text().splitlines() for rank in range(2)]
    lines = []
    while logs[0] or logs[1]:  # in the order in which a launcher would receive them
        for rank, log in enumerate(logs):
            if log:
                lines.append(f"[default{rank}]:{log.pop(0)}")
            while log and "val" in log[0]:
                lines.append(f"[default{rank}]:{log.pop(0)}")
    (folder / "torchrun.log").write_text("\n".join(lines) + "\n")
