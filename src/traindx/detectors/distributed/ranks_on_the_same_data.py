"""Every rank trains on the same batches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import Loader, loaders_in
from traindx.source.loops import training_loops
from traindx.source.module import Module, key_of

WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")
SHARDS = re.compile(
    r"DistributedSampler|split_dataset_by_node|IterableDataset|accelerat|lightning|fabric|"
    r"deepspeed|\.shard\(|replace_sampler|prepare\(|get_rank\(\)\s*\*|webdataset",
    re.IGNORECASE,
)


@detector(needs=("source",), suggests=("missing-distributed-sampler",))
def check(run: Run) -> Iterator[Finding]:
    """A distributed training script loads its data without a distributed sampler.

    ## What it detects
    A file that wraps its model in DistributedDataParallel and trains from a loader without any
    sampler, and in which nothing divides the data among ranks.

    ## Why it matters
    Every rank walks through the whole dataset. With a shared seed all ranks compute the very same
    gradients: N devices do the work of one.

    ## What to do
    `DistributedSampler(dataset)` as the loader's sampler, and `set_epoch` every epoch.

    ## When it is wrong
    Datasets that divide themselves by rank are right without it; a file that speaks of shards or
    streams, or whose dataset is made from the rank, is left alone.
    """
    project = project_of(run)
    for loader in loaders_in(project):
        module = loader.module
        if loader.has_sampler or loader.phase in ("val", "test") or SHARDS.search(module.text):
            continue
        wrapped = _wrapped(module)
        if wrapped is None or _knows_rank(loader) or not _is_trained_from(run, loader):
            continue
        yield Finding(
            claim=f"Every rank reads all of `{_text(loader.dataset)}`: no distributed sampler",
            strength=Strength.STRONG,
            evidence=(
                module.cite(loader.call, "the training loader has no sampler"),
                module.cite(wrapped, "the model is trained on several ranks"),
            ),
            shows="missing-distributed-sampler",
            is_symptom=True,
            location=module.location(loader.call),
        )


def _wrapped(module: Module) -> ast.Call | None:
    return next((c for c, n in module.calls() if n.rsplit(".", 1)[-1] in WRAPPERS), None)


def _knows_rank(loader: Loader) -> bool:
    """Tell whether the function that makes the loader may divide the data by rank."""
    text = "" if loader.dataset is None else ast.unparse(loader.dataset)
    names = [v for v in ast.walk(loader.scope) if isinstance(v, ast.Assign)]
    made = " ".join(ast.unparse(n.value) for n in names if key_of(n.targets[0]) == text)
    return "rank" in f"{text} {made}" or "world_size" in f"{text} {made}"


def _is_trained_from(run: Run, loader: Loader) -> bool:
    for loop in training_loops(project_of(run)):
        for node in ast.walk(loop.node) if loop.module is loader.module else ():
            held = {key_of(n) for n in ast.walk(node.iter)} if isinstance(node, ast.For) else set()
            if loader.name and loader.name in held:
                return True
    return False


def _text(node: ast.expr | None) -> str:
    return "the dataset" if node is None else ast.unparse(node)


_PROGRAM = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

torch.distributed.init_process_group("nccl")
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader({dataset}, batch_size=32, {options})
for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


def _program(options: str, dataset: str = "data", model: str = "DDP(Net())") -> Run:
    text = _PROGRAM.format(options=options, dataset=dataset, model=model)
    return make_run(sources={"train.py": text})


FIRES = {"shuffled on every rank": _program("shuffle=True")}

SILENT = {
    "a sampler": _program("sampler=sampler"),
    "near miss: divided by rank": _program("shuffle=True", "data[rank::world_size]"),
    "near miss: a single process": _program("shuffle=True", model="Net()"),
}
