"""Training and held-out data are prepared in different ways before they are loaded."""

from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.preparation import own_statistics, unlike_preparations
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

CAUSE = "preprocessing-mismatch"


@detector(needs=("source",), suggests=("preprocessing-mismatch",))
def check(run: Run) -> Findings:
    """One of the training and the held-out data goes through a step that the other does not.

    ## What it detects
    Inputs of two loaders, one that training reads and one of held-out data, followed back to where
    they are read: texts that are put in lower case, a logarithm or root, a division by a fixed
    number, on one of the two ways only. And a dataset class that scales what it holds by the mean
    and deviation of it, made once of training and once of held-out data.

    ## Why it matters
    The model is shown inputs that it never learnt from: words that are not in its vocabulary,
    pixels 255 times as large.

    ## What to do
    Prepare both in one function; compute statistics of the training data and hand them on.

    ## When it is wrong
    Files that were prepared in different ways before need different steps. Noise and other random
    steps are not compared, nor are labels.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for unlike in unlike_preparations(story):
            place = unlike.held.loader.site
            if place is None or place.node in seen:
                continue
            seen.add(place.node)
            ways = ("Training", "held-out") if unlike.is_in_training else ("Held-out", "training")
            yield finding(
                f"{ways[0]} data go through `{unlike.step}` and {ways[1]} data do not",
                CAUSE,
                unlike.held.loader,
                cite(unlike.site, "one of them goes through this"),
                cite(unlike.held.loader, "the held-out data are read here"),
                is_symptom=True,
            )
        for own in own_statistics(story):
            if own.statistic.site is not None and own.statistic.site.node not in seen:
                seen.add(own.statistic.site.node)
                yield finding(
                    f"`{own.held.name}` is scaled by its own statistics, not those of training",
                    CAUSE,
                    own.statistic,
                    cite(own.statistic, "computed anew of each dataset"),
                    cite(own.held.loader, "held-out data are read here"),
                    is_symptom=True,
                )


_PROGRAM = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

{data}
model = nn.Linear(20, 3)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(5):
    for x, y in DataLoader(train, 32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in DataLoader(val, 32):
            right = (model(x).argmax(1) == y).sum()
"""
_ARRAYS = """
xt, xv = np.load("train.npy"), np.load("val.npy")
train = TensorDataset(torch.tensor({train}), torch.tensor(np.load("yt.npy")))
val = TensorDataset(torch.tensor({val}), torch.tensor(np.load("yv.npy")))
"""
_CLASS = """
class Rows(Dataset):
    def __init__(self, path{more}):
        self.x, self.y = np.load(path), np.load(path + ".y")
        self.x = (self.x - {mean}) / {std}

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

train = Rows("train.npy"{given})
val = Rows("val.npy"{given})
"""


def _arrays(train: str, val: str) -> Run:
    data = _ARRAYS.format(train=train, val=val)
    return make_run(sources={"train.py": _PROGRAM.format(data=data)})


def _rows(mean: str, std: str, more: str = "", given: str = "") -> Run:
    data = _CLASS.format(mean=mean, std=std, more=more, given=given)
    return make_run(sources={"train.py": _PROGRAM.format(data=data)})


FIRES = {
    "pixels are divided in training only": _arrays("xt / 255.0", "xv"),
    "a logarithm of held-out data only": _arrays("xt", "np.log1p(xv)"),
    "each dataset by its own mean": _rows("self.x.mean(0)", "self.x.std(0)"),
}
SILENT = {
    "near miss: the same number in another form": _arrays("xt / 255.0", "np.divide(xv, 255)"),
    "near miss: statistics of training": _arrays(
        "(xt - xt.mean(0)) / xt.std(0)", "(xv - xt.mean(0)) / xt.std(0)"
    ),
    "noise for training": _arrays("xt / 255.0 + np.random.randn(*xt.shape)", "xv / 255.0"),
    "statistics that are given": _rows("mean", "std", ", mean, std", ", 0.5, 0.2"),
}
