from traindx.analysis.program.training.claims import each_place, finding, source_text
from traindx.analysis.program.training.seeds import early_draws
from traindx.examples import TRAINING, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("unseeded-randomness",))
def check(run: Run) -> Findings:
    """An order, a split or an array is drawn before its generator is seeded.

    ## What it detects
    A program that seeds torch, NumPy or Python before it trains, and draws from the same global
    generator earlier: at the top of a file that is imported, or ahead of the call that seeds.

    ## Why it matters
    The run looks repeatable and is not: every start has another split, so scores of two runs are
    not of the same data, and examples of one run's test set train the next.

    ## What to do
    Seed first, draw inside a function that is called afterwards, or draw from a generator of its
    own: `np.random.default_rng(seed)`, `torch.Generator().manual_seed(seed)`.

    ## When it is wrong
    A single number may be a port or a name, and is left alone; so is what a dataset or worker draws
    for itself, and what is drawn or seeded under a condition.
    """
    for draw, seed in each_place(run, early_draws, lambda found: found[0].node):
        yield finding(
            f"`{source_text(draw)}` draws before its generator is seeded",
            (draw, "another result in every run"),
            (seed, "seeded only here"),
            is_symptom=False,
        )


_PROGRAM = """
import random
import numpy as np
order = {drawn}
def repeatable(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
{seed}
"""
_program = template(_PROGRAM + TRAINING, "drawn", seed="repeatable(3)")

FIRES = {
    "an order": _program("np.random.permutation(100)"),
    "a split": _program("torch.utils.data.random_split(data, [9, 1])"),
    "an array": _program("torch.randn(100, 8)"),
    "the weights of a layer": _program("torch.nn.Linear(8, 2)"),
}

SILENT = {
    "near miss: a generator of its own": _program(
        "torch.randperm(100, generator=torch.Generator().manual_seed(0))"
    ),
    "near miss: a layer, and torch alone is seeded": _program(
        "torch.nn.Linear(8, 2)", "torch.manual_seed(3)"
    ),
    "near miss: one number": _program("np.random.randint(10000, 20000)"),
    "near miss: seeded before": _program("np.random.seed(3) or np.random.permutation(100)"),
    "near miss: a framework seeds, and nothing is drawn": _program(
        "1", "from lightning import seed_everything\nseed_everything(3)"
    ),
    "a fixed order": _program("np.arange(100)"),
}
