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
from traindx.source.project import Project

ADDS = ("append", "extend", "insert")
RANK = re.compile(r"rank|world|num_replicas|shard", re.IGNORECASE)
WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")
SAMPLER = "DistributedSampler"
SHARDS = re.compile(
    r"split_dataset_by_node|IterableDataset|accelerat|lightning|fabric|"
    r"deepspeed|\.shard\(|replace_sampler|prepare\(|get_rank\(\)\s*\*|webdataset",
    re.IGNORECASE,
)


@detector(needs=("source",), suggests=("missing-distributed-sampler",))
def check(run: Run) -> Iterator[Finding]:
    """A distributed training script loads its data without a distributed sampler.

    ## What it detects
    A file that wraps its model in DistributedDataParallel and trains from a loader without any
    sampler, and in which nothing divides the data among ranks, or a sampler that would is made and
    handed to nobody.

    ## Why it matters
    Every rank walks through the whole dataset. With a shared seed all ranks compute the very same
    gradients: N devices do the work of one.

    ## What to do
    `DistributedSampler(dataset)` as the loader's sampler, and `set_epoch` every epoch.

    ## When it is wrong
    Datasets that divide themselves by rank are right without it; a file that speaks of shards or
    streams, or whose dataset is made from the rank, by whatever steps, is left alone. So is one
    that seeds every rank for itself, or in which the loop takes its part of the batches.
    """
    project = project_of(run)
    for loader in loaders_in(project):
        module = loader.module
        if loader.has_sampler or loader.phase in ("val", "test") or SHARDS.search(module.text):
            continue
        idle = _idle_sampler(loader)
        if SAMPLER in module.text and idle is None:
            continue
        wrapped = _wrapped(module)
        if wrapped is None or _knows_rank(project, loader) or _seeds_by_rank(module):
            continue
        if not _is_trained_from(run, loader):
            continue
        yield Finding(
            claim=f"Every rank reads all of `{_text(loader.dataset)}`: no distributed sampler",
            strength=Strength.STRONG,
            evidence=(
                module.cite(loader.call, "the training loader has no sampler"),
                module.cite(wrapped, "the model is trained on several ranks"),
                *(() if idle is None else (module.cite(idle, "no loader gets this sampler"),)),
            ),
            shows="missing-distributed-sampler",
            is_symptom=True,
            location=module.location(loader.call),
        )


def _wrapped(module: Module) -> ast.Call | None:
    return next((c for c, n in module.calls() if n.rsplit(".", 1)[-1] in WRAPPERS), None)


def _idle_sampler(loader: Loader) -> ast.Call | None:
    """Return the making of a sampler of the loader's dataset that is handed to nobody."""
    module = loader.module
    for call, name in module.calls():
        if name.rsplit(".", 1)[-1] != SAMPLER or not call.args or loader.dataset is None:
            continue
        kept = _kept_as(module, call)
        if kept is None or ast.dump(call.args[0]) != ast.dump(loader.dataset):
            continue
        if not any(_is_handed_on(module, n, kept) for n in ast.walk(module.tree)):
            return call
    return None


def _kept_as(module: Module, call: ast.Call) -> str | None:
    statement = module.parents.get(call)
    is_name = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return key_of(statement.targets[0]) if is_name else None  # type: ignore[union-attr]


def _is_handed_on(module: Module, node: ast.AST, name: str) -> bool:
    if key_of(node) != name or not isinstance(getattr(node, "ctx", None), ast.Load):
        return False
    around = module.parents.get(node)
    return not (isinstance(around, ast.Attribute) and around.attr == "set_epoch")


def _knows_rank(project: Project, loader: Loader) -> bool:
    """Tell whether the rank has a part in what the dataset is made from, through all its names."""
    module, waiting = loader.module, [] if loader.dataset is None else [loader.dataset]
    seen: set[str] = set()
    while waiting:
        node = waiting.pop()
        if RANK.search(ast.unparse(node)):
            return True
        if any(_divides_itself(project, module, c) for c in ast.walk(node)):
            return True
        names = {key for n in ast.walk(node) if (key := _name(n)) is not None} - seen
        seen |= names
        waiting += [v for name in names for v in project.lookup(module, loader.scope, name)]
        waiting += [v for name in names for v in _put_into(loader.scope, name)]
    return False


def _name(node: ast.AST) -> str | None:
    return key_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None


def _put_into(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what a list is given on its way: `files.append(…)`, `files += …`."""
    for node in ast.walk(scope):
        if isinstance(node, ast.AugAssign) and key_of(node.target) == name:
            yield node.value
        elif isinstance(node, ast.Call) and key_of(node.func) in [f"{name}.{m}" for m in ADDS]:
            yield from node.args


def _divides_itself(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a call makes a dataset of the project's own that asks for the rank."""
    name = module.qualified(node.func) if isinstance(node, ast.Call) else None
    found = project.find_class(module, name) if name else None
    made = project.find_function(module, name) if name and found is None else None
    home = found or made
    return home is not None and RANK.search(ast.unparse(home[1])) is not None


def _seeds_by_rank(module: Module) -> bool:
    """Tell whether each rank shuffles for itself: `torch.manual_seed(seed + rank)`."""
    return any(
        "seed" in name.rsplit(".", 1)[-1] and RANK.search(" ".join(map(ast.unparse, call.args)))
        for call, name in module.calls()
    )


def _takes_its_part(loop: ast.AST) -> bool:
    """`if i % world_size != rank: continue`, or `batch[rank::world_size]`, in the loop itself."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Compare) and "%" in ast.unparse(node):
            if RANK.search(ast.unparse(node)):
                return True
        elif isinstance(node, ast.Subscript) and RANK.search(ast.unparse(node.slice)):
            return True
    return False


def _is_trained_from(run: Run, loader: Loader) -> bool:
    for loop in training_loops(project_of(run)):
        if loop.module is loader.module and _takes_its_part(loop.node):
            continue
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
{sampler}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader({dataset}, batch_size=32, {options})
for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


_MADE = """
sampler = torch.utils.data.DistributedSampler(data)
sampler.set_epoch(0)
"""


_ASKED = """
parser.add_argument("--local_rank")
args = parser.parse_args()
data = Rows(args.data)
"""


def _program(
    options: str, dataset: str = "data", model: str = "DDP(Net())", sampler: str = ""
) -> Run:
    text = _PROGRAM.format(options=options, dataset=dataset, model=model, sampler=sampler)
    return make_run(sources={"train.py": text})


FIRES = {
    "shuffled on every rank": _program("shuffle=True"),
    "a rank among the settings": _program("shuffle=True", sampler=_ASKED),
    "a sampler that no loader gets": _program("shuffle=True", sampler=_MADE),
}

SILENT = {
    "a sampler": _program("sampler=sampler"),
    "near miss: a sampler that somebody else is given": _program(
        "shuffle=True", sampler=_MADE + "shared.append(sampler)"
    ),
    "near miss: divided by rank": _program("shuffle=True", "data[rank::world_size]"),
    "near miss: its files are divided by rank": _program(
        "shuffle=True", sampler="files = sorted(found)[rank::world]\ndata = Rows(files)"
    ),
    "near miss: a dataset that divides itself": _program(
        "shuffle=True",
        "Part(rows)",
        sampler="class Part(list):\n    def __len__(self):\n        return 9 // get_world_size()",
    ),
    "near miss: each rank shuffles for itself": _program(
        "shuffle=True", sampler="torch.manual_seed(7 + rank)"
    ),
    "near miss: a single process": _program("shuffle=True", model="Net()"),
}
