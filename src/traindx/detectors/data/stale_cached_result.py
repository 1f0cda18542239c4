from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.stale_caches import stale_caches
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("stale-cache",))
def check(run: Run) -> Findings:
    """A cache goes on giving what was computed before a setting changed.

    ## What it detects
    A method that keeps its results (`functools.lru_cache`, `cached_property`, a dictionary of its
    own) and that reads an attribute which is no part of the key, while a loop gives that attribute
    other values. And a file that is written only where there is none, in a loop over settings that
    its content depends on and its path does not.

    ## Why it matters
    Every stage after the first trains on the data of the first. Nothing fails, the setting is
    logged as changed, and its effect is never seen.

    ## What to do
    Make the setting part of the key (an argument, or part of the file's name), or clear the cache
    where it changes (`cache_clear()`).

    ## When it is wrong
    Caches that anything clears or makes anew are left alone, as is what only the constructor sets.
    """
    for found in each_place(run, stale_caches, lambda found: found.site.node):
        yield finding(
            f"What is cached depends on `{found.name}`, which is no part of the key and changes",
            (found.site, "kept from the first call on"),
            (found.change, f"`{found.name}` gets another value"),
        )


_PROGRAM = """
from functools import lru_cache

class Blurred(Dataset):
    def __init__(self, images):
        self.images, self.sigma, self.kept = images, 1.0, {{}}

    def set_sigma(self, sigma):
        self.sigma = sigma
        {clear}

    {method}

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.render(i)

data = Blurred(torch.randn(100, 8))
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters())
for sigma in (3.0, 2.0, 1.0):
    data.set_sigma(sigma)
    for x in DataLoader(data, 10):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
"""
_CACHED = "@lru_cache(None)\n    def render(self, i):\n        return self.images[i] * self.sigma"
_KEPT = """def render(self, i):
        if {key} not in self.kept:
            self.kept[{key}] = self.images[i] * self.sigma
        return self.kept[{key}]"""
_program = template(_PROGRAM, method=_CACHED, clear="pass")
_file = template("""
import os
import numpy as np
for sigma in (3.0, 2.0, 1.0):
    path = {at:"smooth.npy"}
    if not os.path.exists(path):
        np.save(path, smooth(raw, sigma))
    train(np.load(path))
""")

FIRES = {
    "by a decorator": _program(),
    "in a dictionary": _program(_KEPT.format(key="i")),
    "in a file": _file(),
}

SILENT = {
    "near miss: the setting is part of the key": _program(_KEPT.format(key="(i, self.sigma)")),
    "near miss: cleared when it changes": _program(clear="self.render.cache_clear()"),
    "near miss: made anew when it changes": _program(_KEPT.format(key="i"), "self.kept = {}"),
    "near miss: the setting is part of the path": _file('f"smooth-{sigma}.npy"'),
    "nothing is kept": _program("def render(self, i):\n        return self.images[i] * self.sigma"),
    "near miss: never changed": script(
        "from functools import cached_property\nclass A:\n    def __init__(self, n):\n"
        "        self.n = n\n    @cached_property\n    def table(self):\n        return [self.n]\n"
    ),
}
