from traindx.analysis.program.training.claims import finding, source_text
from traindx.analysis.program.training.program import Story, each_place, program_of
from traindx.analysis.program.training.seeds import (
    seeded_without_torch,
    trains,
    uncalled_seeder,
    unseeded_draws,
)
from traindx.examples import TRAINING, script, template
from traindx.registry import Findings, Run, Strength, detector

CAUSE = "unseeded-randomness"


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
    pair = seeded_without_torch(program_of(run))
    if pair is not None:
        python, numpy = pair
        yield finding(
            "Python and NumPy are seeded, and torch is not: weights and order differ from run to "
            "run",
            (numpy, f"`{source_text(numpy)}`, and no torch.manual_seed"),
            (python, f"`{source_text(python)}`"),
            is_symptom=False,
        )
    idle = uncalled_seeder(program_of(run))
    if idle is not None:
        name, site = idle
        claim = f"{name} is never called, so no random generator is seeded"
        yield finding(claim, (site, "defined or imported here"), is_symptom=False)
    yield from each_place(run, _only_torch, lambda found: found.location)


def _only_torch(story: Story) -> Findings:
    """Torch is seeded, and what decides on data or order is drawn without a seed."""
    for draw, library in unseeded_draws(story):
        is_run = trains(story) and story.execution.function is None
        yield finding(
            f"Only torch is seeded: {library} draws without a seed",
            (draw, f"`{draw.name}` is not seeded"),
            strength=Strength.STRONG if is_run else Strength.WEAK,
            hint=None if is_run else Strength.WEAK,
            is_symptom=False,
        )
        return


_LIBRARIES = "import random\nimport numpy as np\n"
_program = template(_LIBRARIES + "{seeds}\norder = np.random.permutation(100)\n", "seeds")
_training = template(_LIBRARIES + "{seeds}" + TRAINING, "seeds")
_BOTH = "random.seed(SEED); np.random.seed(SEED)"
_WORKERS = """
def seed_worker(number):
    seed = {seed}
    random.seed(seed)
    np.random.seed(seed)
loader = DataLoader(data, worker_init_fn={init})
"""
_workers = template(_LIBRARIES + _WORKERS + TRAINING, "seed", "init")
_script = template("""
from transformers import Trainer, set_seed

def main():
    {call}
    model = build()
    Trainer(model=model).train()

if __name__ == "__main__":
    main()
""")
_SEEDER = """
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
_seeder = template(_LIBRARIES + _SEEDER, more="")

FIRES = {
    "torch is forgotten by a function": _seeder(),
    "torch only": _program("torch.manual_seed(0)"),
    "torch is forgotten": _training(_BOTH),
    "what seeds is never called": _script("pass"),
}

SILENT = {
    "a function seeds all": _seeder("torch.manual_seed(seed)"),
    "it is called": _script("set_seed(0)"),
    "near miss: it is handed on": _script("run(set_seed)"),
    "near miss: a library that offers it": script(
        "import torch\ndef set_seed(n):\n    torch.manual_seed(n)\n", path="seeds.py"
    ),
    "near miss: workers are seeded from torch's seed": _workers(
        "torch.initial_seed() % 2**32", "None"
    ),
    "near miss: workers are seeded by their number": _workers("7 + number", "seed_worker"),
    "near miss: a dataset is seeded for itself": _training("""
class Noise(Dataset):
    def __init__(self, seed):
        random.seed(seed)
        np.random.seed(seed)
"""),
    "near miss: seeds that differ from run to run": _training("random.seed(); np.random.seed()"),
    "all are seeded": _training(f"{_BOTH}; torch.manual_seed(SEED)"),
    "near miss: NumPy alone, which makes the data": _training("np.random.seed(0)"),
    "near miss: a framework's own": _training(f"{_BOTH}; pl.seed_everything(SEED)"),
    "both": _program("torch.manual_seed(0); np.random.seed(0)"),
    "no claim to be repeatable": _program(""),
    "near miss: a function that seeds all": _program("torch.manual_seed(0); seed_everything(0)"),
}
