from traindx.analysis.program.training.claims import each_place, finding, node_of
from traindx.analysis.program.training.own_lookups import own_lookups
from traindx.analysis.program.training.preparation import own_statistics, unlike_preparations
from traindx.examples import template
from traindx.registry import Findings, Run, detector

CAUSE = "preprocessing-mismatch"


@detector(needs=("source",), suggests=("preprocessing-mismatch",))
def check(run: Run) -> Findings:
    """One of the training and the held-out data goes through a step that the other does not.

    ## What it detects
    Inputs of two loaders, one that training reads and one of held-out data, followed back to where
    they are read: texts that are put in lower case, a logarithm or root, a division by a fixed
    number, on one of the two ways only. And a dataset class that scales what it holds by the mean
    and deviation of it, made once of training and once of held-out data; and words or categories
    that are numbered, or scalers that are fitted, once by training and once by held-out data.

    ## Why it matters
    The model is shown inputs that it never learnt from: words that are not in its vocabulary,
    pixels 255 times as large.

    ## What to do
    Prepare both in one function; compute statistics of the training data and hand them on.

    ## When it is wrong
    Files that were prepared in different ways before need different steps. Noise and other random
    steps are not compared, nor are labels.
    """
    for unlike in each_place(run, unlike_preparations, lambda unlike: node_of(unlike.held.loader)):
        ways = ("Training", "held-out") if unlike.is_in_training else ("Held-out", "training")
        yield finding(
            f"{ways[0]} data go through `{unlike.step}` and {ways[1]} data do not",
            (unlike.site, "one of them goes through this"),
            (unlike.held.loader, "the held-out data are read here"),
            at=unlike.held.loader,
        )
    for own in each_place(run, own_statistics, lambda own: node_of(own.statistic)):
        yield finding(
            f"`{own.held.name}` is scaled by its own statistics, not those of training",
            (own.statistic, "computed anew of each dataset"),
            (own.held.loader, "held-out data are read here"),
        )
    for lookup in each_place(run, own_lookups, lambda found: node_of(found.learnt)):
        yield finding(
            f"The inputs of `{lookup.held.name}` are {lookup.says}, not as in training",
            (lookup.learnt, "learnt from the held-out data themselves"),
            (lookup.trained, "and from the training data for training"),
        )


_PROGRAM = """
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
import numpy as np
from sklearn.preprocessing import StandardScaler
xt, xv = np.load("train.npy"), np.load("val.npy")
train = TensorDataset(torch.tensor({train}), torch.tensor(np.load("yt.npy")))
val = TensorDataset(torch.tensor({val}), torch.tensor(np.load("yv.npy")))
"""
_CLASS = """
import numpy as np

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
_WORDS = """
class Texts(Dataset):
    def __init__(self, path, ids=None):
        self.rows = [line.split() for line in open(path)]
        words = sorted({{w for row in self.rows for w in row}})
        self.ids = {ids}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor([self.ids[w] for w in self.rows[i][1:]]), int(self.rows[i][0])

train = Texts("train.txt")
val = Texts("val.txt", {given})
"""


_arrays = template(_PROGRAM.format(data=_ARRAYS), "train", "val")
_rows = template(_PROGRAM.format(data=_CLASS), "mean", "std", more="", given="")
_words = template(_PROGRAM.format(data=_WORDS), "ids", given="None")
_FITTED = "StandardScaler().fit_transform({})"

FIRES = {
    "a vocabulary of each dataset": _words("{w: i for i, w in enumerate(words)}"),
    "two scalers": _arrays(_FITTED.format("xt"), _FITTED.format("xv")),
    "pixels are divided in training only": _arrays("xt / 255.0", "xv"),
    "a logarithm of held-out data only": _arrays("xt", "np.log1p(xv)"),
    "each dataset by its own mean": _rows("self.x.mean(0)", "self.x.std(0)"),
}
SILENT = {
    "near miss: the vocabulary of training": _words(
        "ids or {w: i for i, w in enumerate(words)}", "train.ids"
    ),
    "near miss: the same number in another form": _arrays("xt / 255.0", "np.divide(xv, 255)"),
    "near miss: statistics of training": _arrays(
        "(xt - xt.mean(0)) / xt.std(0)", "(xv - xt.mean(0)) / xt.std(0)"
    ),
    "noise for training": _arrays("xt / 255.0 + np.random.randn(*xt.shape)", "xv / 255.0"),
    "statistics that are given": _rows("mean", "std", ", mean, std", ", 0.5, 0.2"),
}
