"""Some sources of randomness are seeded and others are not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module

SEEDERS = {"torch": "torch.manual_seed", "numpy": "numpy.random.seed", "random": "random.seed"}
EVERYTHING = ("seed_everything", "set_seed", "seed_all", "fix_seed", "setup_seed")
DRAWS = frozenset(
    {"rand", "randn", "randint", "shuffle", "permutation", "choice", "choices", "sample",
     "uniform", "normal", "random", "randrange"}
)  # fmt: skip


@detector(needs=("source",), suggests=("unseeded-randomness",))
def check(run: Run) -> Iterator[Finding]:
    """A script seeds torch and draws from NumPy or `random` without a seed.

    ## What it detects
    A file that calls `torch.manual_seed` and also draws from NumPy's or Python's global generator,
    which nothing in the file seeds.

    ## Why it matters
    The run was meant to be repeatable and is not: splits or augmentations differ every time.

    ## What to do
    Seed all of them, or draw from `np.random.default_rng(seed)`.

    ## When it is wrong
    The seed may be set by another file; hence only a weak remark.
    """
    for module in project_of(run).training_modules:
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


FIRES = {"torch only": _program("torch.manual_seed(0)")}

SILENT = {
    "both": _program("torch.manual_seed(0)\nnp.random.seed(0)"),
    "no claim to be repeatable": _program(""),
    "near miss: a function that seeds all": _program("torch.manual_seed(0)\nseed_everything(0)"),
}
