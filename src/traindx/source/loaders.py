"""The data loaders of training code: what they load, in which order, and for which phase."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from traindx.source.module import Module, argument, key_of, literal
from traindx.source.project import Project

PHASES = {
    "train": {"train", "training", "trn", "trainset", "trainloader", "traindata"},
    "val": {"val", "valid", "validation", "dev", "eval", "evaluation", "valloader", "valset",
            "validate", "evaluate", "validloader"},
    "test": {"test", "testing", "holdout", "heldout", "testloader", "testset"},
}  # fmt: skip


def phase_of(name: str) -> str:
    """Return the phase that the words of a name speak of; empty where none or several do."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    words = {w for w in re.split(r"[^a-z]+", split) if w}
    found = [phase for phase, known in PHASES.items() if words & known]
    return found[0] if len(found) == 1 else ""


@dataclass(frozen=True, eq=False)
class Loader:
    """One `DataLoader(…)`; `shuffle` is None where it is decided at run time."""

    module: Module
    call: ast.Call
    name: str
    phase: str
    dataset: ast.expr | None
    shuffle: bool | None
    has_sampler: bool
    batch_size: int | None
    workers: int | None

    @property
    def scope(self) -> ast.AST:
        return self.module.function_of(self.call) or self.module.tree


def loaders_in(project: Project) -> tuple[Loader, ...]:
    """Return every torch data loader that the project makes."""
    return _loaders_in(project)


@lru_cache(maxsize=8)
def _loaders_in(project: Project) -> tuple[Loader, ...]:
    return tuple(
        _loader(module, call)
        for module in project.training_modules
        for call, name in module.calls()
        if name.endswith("DataLoader") and name.startswith(("torch.utils.data", "DataLoader"))
    )


def _loader(module: Module, call: ast.Call) -> Loader:
    dataset = argument(call, "dataset", 0)
    name = _bound_name(module, call)
    phase = phase_of(name) or phase_of((key_of(dataset) or "") if dataset else "")
    is_open = any(k.arg is None for k in call.keywords) or len(call.args) > 2
    given = argument(call, "shuffle", 2)
    value = literal(given)
    shuffle = value if isinstance(value, bool) else (None if given is not None else False)
    sampler = [argument(call, n) for n in ("sampler", "batch_sampler")]
    has_sampler = any(
        s is not None and not (isinstance(s, ast.Constant) and s.value is None) for s in sampler
    )
    batch = literal(argument(call, "batch_size", 1))
    workers = literal(argument(call, "num_workers", 5))
    return Loader(
        module,
        call,
        name,
        phase,
        dataset,
        None if is_open and shuffle is False else shuffle,
        has_sampler or is_open,
        _count(batch, 1 if argument(call, "batch_size", 1) is None and not is_open else None),
        _count(workers, 0 if argument(call, "num_workers") is None and not is_open else None),
    )


def _count(value: object, default: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _bound_name(module: Module, call: ast.Call) -> str:
    above = module.parents.get(call)
    if isinstance(above, ast.Assign):
        return key_of(above.targets[0]) or ""
    if isinstance(above, ast.AnnAssign):
        return key_of(above.target) or ""
    if isinstance(above, ast.Return):
        function = module.function_of(call)
        return "" if function is None else function.name
    if isinstance(above, ast.Tuple):
        return _unpacked_name(module, call, above)
    if isinstance(above, ast.Dict):
        key = above.keys[above.values.index(call)] if call in above.values else None
        return str(literal(key) or "")
    return ""


def _unpacked_name(module: Module, call: ast.Call, above: ast.Tuple) -> str:
    outer = module.parents.get(above)
    target = outer.targets[0] if isinstance(outer, ast.Assign) else None
    if isinstance(target, ast.Tuple) and len(target.elts) == len(above.elts):
        return key_of(target.elts[above.elts.index(call)]) or ""
    return ""


def resolve(
    project: Project, module: Module, at: ast.AST, node: ast.expr | None
) -> ast.expr | None:
    """Return the expression that a name stands for, where it is bound exactly once."""
    for _ in range(4):
        key = None if node is None or isinstance(node, ast.Call) else key_of(node)
        if key is None:
            return node
        found = [v for v in project.lookup(module, at, key) if v is not node]
        if not found and not isinstance(node, ast.Name):
            return node
        if len(found) != 1:
            return None
        node = found[0]
    return node
