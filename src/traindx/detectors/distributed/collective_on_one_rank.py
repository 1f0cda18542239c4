from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.lone_collectives import lone_collectives
from traindx.analysis.program.training.rank_exits import lone_exits
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("collective-mismatch",))
def check(run: Run) -> Findings:
    """A collective operation runs under a condition that only some ranks meet.

    ## What it detects
    `all_reduce`, `broadcast`, `barrier` or another collective of `torch.distributed` (or of
    Accelerate and Fabric) that is reached, be it through functions, only where a comparison with
    the rank holds (`if rank == 0:`), while no other side of such a condition calls it. Likewise a
    training loop that a rank leaves by a loss of its own share of the data, as by early stopping.

    ## Why it matters
    A collective waits for every rank. The ranks that skip it go on to the next collective, which
    does not match: the job hangs until a timeout, or mixes up tensors.

    ## What to do
    Call it on all ranks and keep only what follows (printing, saving) under the condition.

    ## When it is wrong
    A subgroup of ranks may meet alone; calls with a `group` are left alone. So is a collective that
    appears under several conditions on the rank, as where one rank prepares the data first.
    """
    for found in each_place(run, lone_collectives, lambda found: found.event.node):
        yield finding(
            f"{found.name} runs on some ranks only: the others wait in another collective",
            (found.event, f"{found.name} needs every rank"),
            (found.guard.site, "but is reached only under this condition on the rank"),
            at=found.place,
        )
    for left in each_place(run, lone_exits, lambda left: left.exit.site.node):
        yield finding(
            "Each rank leaves the loop by a number of its own share: the others wait for it",
            (left.guard.site, "decided by what this rank alone has seen"),
            (left.exit.site, "a rank leaves here"),
            (left.backward, "and the next backward pass needs every rank"),
            at=left.exit.site,
        )


_PROGRAM = """
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def mean(value):
    total = torch.tensor([value])
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()

def main():
    dist.init_process_group("nccl")
    rank = {rank}
    model = DDP(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
{after}

main()
"""


def _program(after: str, rank: str = "dist.get_rank()") -> Run:
    lines = "\n".join(f"        {line}" for line in after.splitlines())
    return template(_PROGRAM)(after=lines, rank=rank)


_STOPPING = """
import torch.distributed as dist
from torch.utils.data.distributed import DistributedSampler
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
for epoch in range(100):
    total = torch.zeros(())
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        total += loss.detach()
    {agree}
    if total < 0.1:
        break
"""
_stopping = template(_STOPPING, agree="pass")

FIRES = {
    "stopped by the loss of its own share": _stopping(),
    "in a function that one rank calls": _program("if rank == 0:\n    print(mean(loss.item()))"),
    "the rank of the environment": _program(
        "if rank == 0:\n    dist.barrier()", 'int(os.environ["RANK"])'
    ),
    "after the others have gone on": _program("if rank != 0:\n    continue\nmean(loss.item())"),
}

SILENT = {
    "near miss: stopped by the loss of all": _stopping("dist.all_reduce(total)"),
    "on every rank": _program("value = mean(loss.item())\nif rank == 0:\n    print(value)"),
    "near miss: only where there are several ranks": _program(
        "if dist.get_world_size() > 1:\n    mean(loss.item())"
    ),
    "near miss: one rank first, then the others": _program(
        "if rank != 0:\n    dist.barrier()\nprepare()\nif rank == 0:\n    dist.barrier()"
    ),
    "near miss: one rank first, then the others, by one function": _program(
        "def meet():\n    dist.barrier()\n"
        "if rank != 0:\n    meet()\nprepare()\nif rank == 0:\n    meet()"
    ),
    "near miss: all but some ranks wait, then the first": _program(
        "if rank not in {-1, 0}:\n    dist.barrier()\nprepare()\nif rank == 0:\n    dist.barrier()"
    ),
    "near miss: in a group of its own": _program(
        "if rank < 2:\n    dist.all_reduce(loss, group=pair)"
    ),
    "near miss: on both sides": _program(
        "if rank == 0:\n    dist.broadcast(loss, 0)\nelse:\n    dist.broadcast(other, 0)"
    ),
}
