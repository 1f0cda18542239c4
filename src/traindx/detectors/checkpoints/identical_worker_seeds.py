from traindx.analysis.program.execution.values import constant
from traindx.analysis.program.training.claims import each_place, finding, node_of
from traindx.analysis.program.training.worker_seeds import shared_draws
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("worker-seed-duplication",))
def check(run: Run) -> Findings:
    """A dataset draws from a generator that every worker has a copy of.

    ## What it detects
    A dataset whose examples are made with random numbers of a NumPy or Python generator that was
    made before the workers start (by the dataset, its transform or its collate function), loaded by
    workers without a `worker_init_fn`; a `worker_init_fn` that seeds all workers alike; a stream
    that makes its generator with one seed in every worker.

    ## Why it matters
    Each worker gets a copy of the dataset, generator included, in the same state: all of them draw
    the same numbers, and draw them again in every epoch. Augmentation loses its variety.

    ## What to do
    Make the generator in the worker: from `torch.utils.data.get_worker_info().seed`, or in
    `worker_init_fn`. The global `np.random` is seeded per worker by torch since 1.9.

    ## When it is wrong
    A dataset that asks which worker it runs in is left alone. Where the number of workers is not in
    sight, the finding is weaker.
    """
    for shared in each_place(run, shared_draws, lambda shared: node_of(shared.at)):
        count = constant(shared.feed.settings.get("num_workers"))
        workers = f"{count} workers" if isinstance(count, int) else "workers"
        yield finding(
            f"All {workers} draw the same random numbers from `{shared.name}`",
            (shared.at, shared.why),
            (shared.feed.loader, workers),
            strength=Strength.STRONG if isinstance(count, int) else Strength.MODERATE,
        )


_PROGRAM = """
import numpy as np

class Images(Dataset):
    def __init__(self, seed):
        self.rng = {made:np.random.default_rng(seed)}

    def __getitem__(self, i):
        return self.images[i] + {draw:self.rng.normal()}

train_loader = DataLoader(Images(0), num_workers={workers}, shuffle=True{options:})
"""
_program = template(_PROGRAM, workers=4)

_changed = template("""
import random

class Shaken:
    def __init__(self, seed):
        self.numbers = random.Random(seed)

    def __call__(self, image):
        return image * {draw:self.numbers.uniform(0.9, 1.1)}

class Images(Dataset):
    def __init__(self, images, change=None):
        self.images, self.change = images, change

    def __getitem__(self, i):
        image = self.images[i]
        return image if self.change is None else self.change(image)

def build(images):
    data = Images(images, change=Shaken(0))
    return DataLoader(data, batch_size=8, num_workers=2)

loader = build(images)
""")

_STREAM = """
import numpy as np
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Waves(IterableDataset):
    def __init__(self, seed, count):
        self.rng, self.count = np.random.default_rng(seed), count

    def __iter__(self):
        info = get_worker_info()
        count = self.count if info is None else self.count // info.num_workers
        {more}
        for _ in range(count):
            yield self.rng.normal(size=16)

loader = DataLoader(Waves(0, 1000), batch_size=8, num_workers=2)
"""

FIRES = {
    "a stream that only asks how many workers there are": script(_STREAM, more="pass"),
    "a generator of the dataset": _program(),
    "a generator of the transform": _changed(),
    "workers are seeded alike": _program(
        "None", "np.random.normal()", options=", worker_init_fn=lambda w: np.random.seed(7)"
    ),
    "numbers of a state": _program("np.random.RandomState(seed)", "self.rng.rand()"),
}

SILENT = {
    "near miss: a stream that moves on by the number of its worker": script(
        _STREAM, more="self.rng = np.random.default_rng([0, info.id])"
    ),
    "near miss: a generator that is never drawn from": _changed("2"),
    "near miss: a new generator for each example": _program(
        "None", "np.random.default_rng(i).normal()"
    ),
    "in the main process": _program(workers=0),
    "near miss: the global generator": _program("None", "np.random.normal()"),
    "near miss: seeded by the number of the worker": _program(
        "None", "np.random.normal()", options=", worker_init_fn=lambda w: np.random.seed(7 + w)"
    ),
    "near miss: seeded by worker": _program(options=", worker_init_fn=seed_worker"),
}
