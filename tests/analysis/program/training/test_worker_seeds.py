"""Each worker of a loader draws random numbers of its own."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import each_place
from traindx.analysis.program.training.worker_seeds import shared_draws
from traindx.examples import script

PROGRAM = """
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, i):
        return self.images[i] + {draw}

loader = DataLoader(Images(), num_workers={workers}{options})
"""


@pytest.mark.parametrize(
    ("draw", "workers", "options", "names"),
    [
        ("self.rng.normal()", 4, "", ["rng"]),
        ("self.rng.normal()", 0, "", []),
        ("self.rng.normal()", 4, ", worker_init_fn=seed_worker", []),
        ("np.random.normal()", 4, "", []),
    ],
)
def test_draws_that_workers_share(draw: str, workers: int, options: str, names: list[str]) -> None:
    run = script(PROGRAM, draw=draw, workers=workers, options=options)
    found = each_place(run, shared_draws, lambda shared: shared.at.site)
    assert [shared.name for shared in found] == names
