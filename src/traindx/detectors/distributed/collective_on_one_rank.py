"""A collective is called on some ranks only."""

from traindx.analysis.program.execution.events import Guard, ProgramEvent, is_same_call
from traindx.analysis.program.execution.values import Known, Result, Value, origins
from traindx.analysis.program.training.claims import cite, finding, is_same_scope
from traindx.analysis.program.training.data import is_own_rank
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

COLLECTIVES = frozenset(
    {"all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor", "broadcast",
     "broadcast_object_list", "reduce", "gather", "scatter", "barrier", "reduce_scatter",
     "all_to_all", "monitored_barrier", "gather_object", "reduce_scatter_tensor"}
)  # fmt: skip
OF_ENGINES = frozenset({".gather", ".gather_for_metrics", ".reduce", ".wait_for_everyone",
                        ".all_reduce", ".all_gather", ".barrier"})  # fmt: skip


@detector(needs=("source",), suggests=("collective-mismatch",))
def check(run: Run) -> Findings:
    """A collective operation runs under a condition that only some ranks meet.

    ## What it detects
    `all_reduce`, `broadcast`, `barrier` or another collective of `torch.distributed` (or of
    Accelerate and Fabric) that is reached, be it through functions, only where a comparison with
    the rank holds (`if rank == 0:`), while no other side of such a condition calls it.

    ## Why it matters
    A collective waits for every rank. The ranks that skip it go on to the next collective, which
    does not match: the job hangs until a timeout, or mixes up tensors.

    ## What to do
    Call it on all ranks and keep only what follows (printing, saving) under the condition.

    ## When it is wrong
    A subgroup of ranks may meet alone; calls with a `group` are left alone. So is a collective that
    appears under several conditions on the rank, as where one rank prepares the data first.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        guarded = [(e, g) for e in story.events if _is_collective(story, e) and (g := _guard(e))]
        for event, guard in guarded:
            if event.node in seen or _is_met(event, guard, story) or event.node is guard.site.node:
                continue
            seen.add(event.node)
            yield _finding(event, guard)


def _is_collective(story: Story, event: ProgramEvent) -> bool:
    home, last = event.name.rpartition(".")[::2]
    if home == "torch.distributed":
        return last in COLLECTIVES and "group" not in event.kwargs
    if event.name == ".state_dict" and isinstance(event.receiver, Result):
        return event.receiver.maker.endswith("FullyShardedDataParallel")  # gathers all shards
    return event.name in OF_ENGINES and story.is_kind(event.receiver, Kind.ENGINE)


def _guard(event: ProgramEvent) -> Guard | None:
    """The condition on the rank under which a collective runs."""
    return next((g for g in event.guards if g.test is not None and _asks_rank(g.test)), None)


def _asks_rank(test: Value) -> bool:
    """Tell whether a condition compares the rank of this process with a number."""
    for value in origins(test, 40):
        if not isinstance(value, Result):
            continue
        is_compared = value.maker in ("operator.eq", "operator.ne", "operator.gt", "operator.not")
        if is_compared and any(map(_is_rank, value.args)):
            return all(_is_rank(v) or isinstance(v, Known) for v in value.args)
    return _is_rank(test)


def _is_rank(value: Value) -> bool:
    while isinstance(value, Result) and value.maker == "builtins.int" and value.args:
        value = value.args[0]
    return is_own_rank(value)


def _is_met(event: ProgramEvent, guard: Guard, story: Story) -> bool:
    """Tell whether the other ranks call the same collective under another condition."""
    for other in story.events:
        if other.name != event.name or is_same_call(other, event):
            continue
        ranked = (g for g in other.guards if g.test is not None and _depends_on_rank(g.test))
        for theirs in ranked:
            if theirs.site.node is not guard.site.node or theirs.holds is not guard.holds:
                return True
    return False


def _depends_on_rank(test: Value) -> bool:
    return any(_is_rank(value) for value in origins(test, 40))


def _finding(event: ProgramEvent, guard: Guard) -> Finding:
    name = event.name.rsplit(".", 1)[-1]
    calls = [site for site in event.callers if is_same_scope(site, guard.site)]
    return finding(
        f"{name} runs on some ranks only: the others wait in another collective",
        "collective-mismatch",
        calls[-1] if calls else event,
        cite(event, f"{name} needs every rank"),
        cite(guard.site, "but is reached only under this condition on the rank"),
        is_symptom=True,
    )


_PROGRAM = """
import os
import torch
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
    return make_run(sources={"train.py": _PROGRAM.format(after=lines, rank=rank)})


FIRES = {
    "in a function that one rank calls": _program("if rank == 0:\n    print(mean(loss.item()))"),
    "the rank of the environment": _program(
        "if rank == 0:\n    dist.barrier()", 'int(os.environ["RANK"])'
    ),
    "after the others have gone on": _program("if rank != 0:\n    continue\nmean(loss.item())"),
}

SILENT = {
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
