"""Some sources of randomness are seeded and others are not."""

from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.analysis.program.training.seeds import (
    idle_seeders,
    seeded,
    seeded_together,
    trains,
    unseeded_draws,
)
from traindx.examples import make_run
from traindx.model.findings import Strength
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("unseeded-randomness",))
def check(run: Run) -> Findings:
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
    program = program_of(run)
    yield from _torch_forgotten(program)
    yield from _never_called(program)
    seen: set[object] = set()
    for story in program.stories:
        for found in _only_torch(story):
            if found.location not in seen:
                seen.add(found.location)
                yield found


def _torch_forgotten(program: Program) -> Findings:
    """Python and NumPy are seeded together, and torch, which draws the weights, is not."""
    stories = program.stories
    if any(seeded(e) in ("torch", "all") for s in stories for e in s.events):
        return
    pairs = (
        (pair for s in stories for pair in seeded_together(s)) if any(map(trains, stories)) else ()
    )
    for python, numpy in pairs:
        yield finding(
            "Python and NumPy are seeded, and torch is not: weights and order differ from run to "
            "run",
            "unseeded-randomness",
            numpy,
            cite(numpy, f"`{source_text(numpy)}`, and no torch.manual_seed"),
            cite(python, f"`{source_text(python)}`"),
        )
        return


def _never_called(program: Program) -> Findings:
    """A script imports or defines what seeds everything, and nothing calls it."""
    idle = list(idle_seeders(program))
    unused = {site.node for _, site in idle}
    events = (e for s in program.stories for e in s.events)
    if not idle or any(seeded(e) in ("torch", "all") and e.function not in unused for e in events):
        return
    name, site = idle[0]
    yield finding(
        f"Nothing calls {name}, which is there to seed all: no generator is seeded",
        "unseeded-randomness",
        site,
        cite(site, f"{name} comes from here and is never called"),
    )


def _only_torch(story: Story) -> Findings:
    """Torch is seeded, and what decides on data or order is drawn without a seed."""
    for draw, library in unseeded_draws(story):
        is_run = trains(story) and story.execution.function is None
        hint = None if is_run else Strength.WEAK
        yield finding(
            f"Only torch is seeded: {library} draws without a seed",
            "unseeded-randomness",
            draw,
            cite(draw, f"`{draw.name}` is not seeded"),
            strength=Strength.WEAK if hint else Strength.STRONG,
            hint=hint,
        )
        return


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

_SEEDER = """
import random
import numpy as np

def repeatable(seed):
    random.seed(seed)
    np.random.seed(seed)
{more}
class Fitter:
    def fit(self, net, opt, loader):
        for x, y in loader:
            opt.zero_grad()
            net(x).sub(y).abs().mean().backward()
            opt.step()

repeatable(3)
Fitter().fit(net, opt, loader)
"""

FIRES = {
    "torch is forgotten by a function": make_run(sources={"train.py": _SEEDER.format(more="")}),
    "torch only": _program("torch.manual_seed(0)"),
    "torch is forgotten": _training(*_BOTH),
    "what seeds is never called": make_run(sources={"train.py": _SCRIPT.format(call="pass")}),
}

SILENT = {
    "a function seeds all": make_run(
        sources={"train.py": "import torch\n" + _SEEDER.format(more="    torch.manual_seed(seed)")}
    ),
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
