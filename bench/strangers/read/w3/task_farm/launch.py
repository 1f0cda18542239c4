"""torchrun --nproc_per_node=4 launch.py"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

TASKS = {"depth": 1, "normals": 3, "albedo": 4}


class MultiTaskNet(nn.Module):
    def __init__(self, d_in=32, dim=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d_in, dim), nn.GELU(), nn.Linear(dim, dim), nn.GELU())
        self.heads = nn.ModuleDict({t: nn.Linear(dim, n) for t, n in TASKS.items()})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


def task_batches(rank, steps, batch, device):
    """Each worker draws its own tasks so that no head starves."""
    g = torch.Generator().manual_seed(1000 + rank)
    truth = {t: torch.randn(32, n, generator=torch.Generator().manual_seed(i)) for i, (t, n) in enumerate(TASKS.items())}
    names = list(TASKS)
    for _ in range(steps):
        task = names[torch.randint(len(names), (1,), generator=g).item()]
        x = torch.randn(batch, 32, generator=g)
        y = torch.tanh(x @ truth[task] / 6)
        yield task, x.to(device), y.to(device)


def broadcast_weights(model):
    for t in list(model.parameters()) + list(model.buffers()):
        dist.broadcast(t.data, src=0)


def average_gradients(model, world):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
            p.grad /= world


@torch.no_grad()
def evaluate(model, rank, world, device):
    model.eval()
    sums = torch.zeros(2, device=device)
    for task, x, y in task_batches(500 + rank, 10, 64, device):
        sums += torch.stack([F.mse_loss(model(x, task), y), torch.ones((), device=device)])
    dist.all_reduce(sums)
    model.train()
    return (sums[0] / sums[1]).item()


def main():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend)
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    model = MultiTaskNet().to(device)
    broadcast_weights(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for step, (task, x, y) in enumerate(task_batches(rank, 300, 64, device)):
        opt.zero_grad(set_to_none=True)
        F.mse_loss(model(x, task), y).backward()
        average_gradients(model, world)
        opt.step()
        if (step + 1) % 100 == 0:
            err = evaluate(model, rank, world, device)
            if rank == 0:
                print(f"step {step + 1} eval mse {err:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
