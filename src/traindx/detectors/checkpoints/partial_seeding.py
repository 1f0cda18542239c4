"""Some sources of randomness are seeded and others are not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import phase_of
from traindx.source.loops import training_loops
from traindx.source.module import Function, Module, key_of
from traindx.source.project import Project

SEEDERS = {"torch": "torch.manual_seed", "numpy": "numpy.random.seed", "random": "random.seed"}
EVERYTHING = ("seed_everything", "set_seed", "seed_all", "fix_seed", "setup_seed")
# what seeds torch, or gives it generators of its own, also within a framework
SEEDS_TORCH = re.compile(
    r"manual_seed|seed_everything|set_seed|seed_all|fix_seed|setup_seed|torch\.(?:random\.)?seed\("
    r"|torch\.Generator|set_rng_state|TrainingArguments|\bimport_module\b"
)
TRAINS = re.compile(r"\.backward\(|Trainer\(|\.fit\(")
# a seed that comes from torch's own, or that is meant to differ from run to run
DRAWN_SEED = re.compile(r"initial_seed|get_worker_info|worker|torch\.|time\b|urandom|SeedSequence")
# a part that is seeded for itself: what it draws says nothing about the weights
PARTS = re.compile(r"Dataset|Env$|Environment|Sampler|Loader|Transform|Simulator")
DRAWS = frozenset(
    {"rand", "randn", "randint", "shuffle", "permutation", "choice", "choices", "sample",
     "uniform", "normal", "random", "randrange"}
)  # fmt: skip


@detector(needs=("source",), suggests=("unseeded-randomness",))
def check(run: Run) -> Iterator[Finding]:
    """A script seeds some generators, and draws from another one that it does not seed.

    ## What it detects
    A file that calls `torch.manual_seed` and also draws from NumPy's or Python's global generator,
    which nothing in the file seeds. The other way round: a function or file that seeds Python and
    NumPy with one value, as is done to make a run repeatable, in a program that trains with torch
    and that seeds torch nowhere. Or a script that imports `set_seed` or its kin, or defines a
    function that seeds torch, and never calls it.

    ## Why it matters
    The run was meant to be repeatable and is not: splits or augmentations differ every time.

    ## What to do
    Seed all of them, or draw from `np.random.default_rng(seed)`.

    ## When it is wrong
    The seed may be set by another file; hence only a weak remark on what NumPy or Python draw.
    Frameworks that seed torch themselves, and generators of its own, are left alone. So is what
    seeds the workers of a loader from torch's own seed, or a dataset or environment for itself.
    """
    project = project_of(run)
    yield from _torch_forgotten(project)
    yield from _never_called(project)
    for module in project.training_modules:
        names = [n for _, n in module.calls()]
        if SEEDERS["torch"] not in names or any(w in module.text for w in EVERYTHING):
            continue
        for library in ("numpy", "random"):
            draw = _draw(module, library)
            if draw is not None and SEEDERS[library] not in names:
                yield Finding(
                    claim=f"Only torch is seeded: {library} draws without a seed",
                    strength=Strength.WEAK,
                    evidence=(module.cite(draw, f"`{ast.unparse(draw.func)}` is not seeded"),),
                    suggests={"unseeded-randomness": Strength.WEAK},
                    location=module.location(draw),
                )


def _torch_forgotten(project: Project) -> Iterator[Finding]:
    """Python and NumPy are seeded together, and torch, which draws the weights, is not."""
    if any(SEEDS_TORCH.search(m.text) for m in project.modules):
        return
    training = {x.module for x in training_loops(project)}
    for module in project.training_modules:
        if "torch" not in {r for m in training for r in m.roots}:
            continue
        for python, numpy in _seeded_together(project, module):
            given = ast.unparse(numpy.args[0])
            yield Finding(
                claim="Python and NumPy are seeded, and torch is not: weights and order differ "
                "from run to run",
                strength=Strength.STRONG,
                evidence=(
                    module.cite(
                        numpy, f"`{ast.unparse(numpy)}`, and no torch.manual_seed({given})"
                    ),
                    module.cite(python, f"`{ast.unparse(python)}`"),
                ),
                shows="unseeded-randomness",
                location=module.location(numpy),
            )
            return


def _seeded_together(project: Project, module: Module) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Yield where one function seeds Python and NumPy with one value, for the run to repeat."""
    calls = [(c, n) for c, n in module.calls() if c.args]
    for python in (c for c, n in calls if n == SEEDERS["random"]):
        for numpy in (c for c, n in calls if n == SEEDERS["numpy"]):
            is_one = module.function_of(python) is module.function_of(numpy)
            is_same = ast.dump(python.args[0]) == ast.dump(numpy.args[0])
            if is_one and is_same and not _is_for_a_part(project, module, numpy):
                yield python, numpy


def _is_for_a_part(project: Project, module: Module, seed: ast.Call) -> bool:
    """Tell whether a worker, a dataset or an evaluation is seeded, and not the whole run."""
    function, cls = module.function_of(seed), module.class_of(seed)
    if cls is not None and PARTS.search(" ".join([cls.name, *map(ast.unparse, cls.bases)])):
        return True
    if function is not None and (
        phase_of(function.name) in ("val", "test") or _starts_workers(project, function.name)
    ):
        return True
    at: ast.AST = function or module.tree
    given = seed.args[0]
    names = {n.id for n in ast.walk(given) if isinstance(n, ast.Name)}
    made = [v for name in names for v in project.lookup(module, at, name)]
    return any(DRAWN_SEED.search(ast.unparse(v)) for v in (given, *made))


def _starts_workers(project: Project, function: str) -> bool:
    given = (
        k.value
        for m in project.modules
        for call, _ in m.calls()
        for k in call.keywords
        if k.arg == "worker_init_fn"
    )
    return any((key_of(n) or "").endswith(function) for v in given for n in ast.walk(v))


def _never_called(project: Project) -> Iterator[Finding]:
    """A script imports or defines what seeds everything, and nothing calls it."""
    called = {n.rsplit(".", 1)[-1] for m in project.modules for _, n in m.calls()}
    used = {n.id for m in project.modules for n in m.nodes(ast.Name)}
    for module in project.training_modules:
        own = {
            n: f for n, f in module.functions.items() if "." not in n and _seeds_torch(module, f)
        }
        imported = (n for n in ast.walk(module.tree) if isinstance(n, ast.ImportFrom))
        names = {a.asname or a.name: n for n in imported for a in n.names if a.name in EVERYTHING}
        idle = {name: node for name, node in {**own, **names}.items() if name not in used | called}
        is_script = "__main__" in module.text and TRAINS.search(module.text) is not None
        if not idle or not is_script or called & set(EVERYTHING):
            continue
        inside = {n for f in idle.values() for n in ast.walk(f)}
        seeds = [c for m in project.modules for c, n in m.calls() if SEEDS_TORCH.search(n)]
        if any(c not in inside for c in seeds):
            continue
        name, node = next(iter(idle.items()))
        yield Finding(
            claim=f"Nothing calls {name}, which is there to seed all: no generator is seeded",
            strength=Strength.STRONG,
            evidence=(module.cite(node, f"{name} comes from here and is never called"),),
            shows="unseeded-randomness",
            location=Location(module.path, node.lineno, node.lineno),
        )
        return


def _seeds_torch(module: Module, function: Function) -> bool:
    return any(n == SEEDERS["torch"] for _, n in module.calls(function))


def _draw(module: Module, library: str) -> ast.Call | None:
    prefix = "numpy.random." if library == "numpy" else "random."
    for call, name in module.calls():
        if name.startswith(prefix) and name.removeprefix(prefix) in DRAWS:
            return call
    return None


def _program(seeds: str) -> Run:
    text = (
        "import random\nimport numpy as np\nimport torch\n"
        f"{seeds}\norder = np.random.permutation(100)\n"
    )
    return make_run(sources={"train.py": text})


_TRAINING = """
import random
import numpy as np
import torch
from torch import nn

{seeds}
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def _training(*seeds: str) -> Run:
    return make_run(sources={"train.py": _TRAINING.format(seeds="\n".join(seeds))})


_BOTH = ("random.seed(SEED)", "np.random.seed(SEED)")

_WORKERS = (
    "def seed_worker(number):",
    "    seed = {seed}",
    "    random.seed(seed)",
    "    np.random.seed(seed)",
    "loader = DataLoader(data, worker_init_fn={init})",
)
_DATASET = (
    "class Noise(torch.utils.data.Dataset):",
    "    def __init__(self, seed):",
    "        random.seed(seed)",
    "        np.random.seed(seed)",
)


def _workers(seed: str, init: str) -> Run:
    return _training(*(line.format(seed=seed, init=init) for line in _WORKERS))


_SCRIPT = """
import torch
from transformers import Trainer, set_seed

def main():
    {call}
    model = build()
    Trainer(model=model).train()

if __name__ == "__main__":
    main()
"""

FIRES = {
    "torch only": _program("torch.manual_seed(0)"),
    "torch is forgotten": _training(*_BOTH),
    "what seeds is never called": make_run(sources={"train.py": _SCRIPT.format(call="pass")}),
}

SILENT = {
    "it is called": make_run(sources={"train.py": _SCRIPT.format(call="set_seed(0)")}),
    "near miss: it is handed on": make_run(
        sources={"train.py": _SCRIPT.format(call="run(set_seed)")}
    ),
    "near miss: a library that offers it": make_run(
        sources={"seeds.py": "import torch\ndef set_seed(n):\n    torch.manual_seed(n)\n"}
    ),
    "near miss: workers are seeded from torch's seed": _workers(
        "torch.initial_seed() % 2**32", "None"
    ),
    "near miss: workers are seeded by their number": _workers("7 + number", "seed_worker"),
    "near miss: a dataset is seeded for itself": _training(*_DATASET),
    "near miss: seeds that differ from run to run": _training("random.seed()", "np.random.seed()"),
    "all are seeded": _training(*_BOTH, "torch.manual_seed(SEED)"),
    "near miss: NumPy alone, which makes the data": _training("np.random.seed(0)"),
    "near miss: a framework's own": _training(*_BOTH, "pl.seed_everything(SEED)"),
    "both": _program("torch.manual_seed(0)\nnp.random.seed(0)"),
    "no claim to be repeatable": _program(""),
    "near miss: a function that seeds all": _program("torch.manual_seed(0)\nseed_everything(0)"),
}
