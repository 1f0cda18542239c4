"""The loader that is called validation holds the training data."""

from collections.abc import Iterator

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.loaders import (
    dataset_of,
    has_sampler,
    is_held_out,
    is_loader,
    is_switched,
    named_loaders,
    same_data,
    same_selection,
)
from traindx.analysis.program.training.phases import evaluations, loops_of, phase_word
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.same_rows import overlap, same_rows
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

Named = tuple[str, Value]


@detector(needs=("source",), suggests=("evaluating-on-training-data",))
def check(run: Run) -> Findings:
    """A loader named for validation or testing reads the training dataset.

    ## What it detects
    `val_loader = train_loader`; two loaders, one for training and one for validation, over the same
    dataset object, the same tensors, or datasets that are made alike: the same class or function
    with the same split, also where the split is a default that nobody overrides, or an argument
    that the class forgets to hand on, so that both take the same rows. And parts that overlap: cut
    from the same end of one list, or by a random order that each draws for itself.

    ## Why it matters
    The metric says how well the training data are remembered. It looks excellent and says nothing
    about new data.

    ## What to do
    Hold data out: `random_split`, or the dataset's own test split.

    ## When it is wrong
    One dataset with samplers or subsets over different indices is right, and so is a deliberate
    check on training data that is named so, or that only happens under a condition. A dataset that
    is switched from one split to the other, or that draws new examples, may be the same object; the
    training split of another dataset is held-out data.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for train, held in _pairs(story):
            says = _same(story, train, held)
            node = None if held[1].site is None else held[1].site.node
            if says and node not in seen:
                seen.add(node)
                yield _finding(train, held, says)


def _pairs(story: Story) -> Iterator[tuple[Named, Named]]:
    """Pairs of loaders: one that is trained on, and one for held-out data."""
    for loaders in named_loaders(story):
        trained = [(n, v) for n, v in loaders.items() if phase_word(n) == "train"]
        held = [(n, v) for n, v in loaders.items() if is_held_out(n)]
        yield from ((t, h) for t in trained for h in held)
    over = [x.over for x in loops_of(story) if x.does(Do.BACKWARD) and x.over is not None]
    for evaluation in evaluations(story):
        held_out = None if evaluation.loop is None else evaluation.loop.over
        if held_out is not None and is_loader(held_out):
            name = next((n for n in sorted(held_out.names) if is_held_out(n)), evaluation.split)
            others = [v for v in over if is_loader(v) and v is not held_out]
            yield from (((_train_name(v), v), (name, held_out)) for v in others)


def _train_name(loader: Value) -> str:
    return next((n for n in sorted(loader.names) if phase_word(n) == "train"), "the training data")


def _same(story: Story, train: Named, held: Named) -> str:
    """Say in what way two loaders give the same examples; empty where they may not."""
    (train_name, one), (_, other) = train, held
    if one is other:
        return f"the same loader as {train_name}"
    data = dataset_of(one)
    if has_sampler(one) or has_sampler(other):
        return ""
    shared = overlap(story, one, other)
    if shared:
        return f"it shares rows with {train_name}, for {shared}"
    if not same_data(data, dataset_of(other)) and not same_rows(story, one, other):
        return ""
    if data is None or is_switched(story, data, [one, other]) or not same_selection(one, other):
        return ""
    return f"it reads the same data as {train_name}"


def _finding(train: Named, held: Named, says: str) -> Finding:
    (_, one), (name, other) = train, held
    where = dataset_of(other) if one is not other else None
    at = where if where is not None and where.site is not None else other
    return finding(
        f"`{name}` holds training data: {says}",
        "evaluating-on-training-data",
        other,
        cite(at, f"{name}: {says}"),
        is_symptom=True,
    )


_PROGRAM = """
from torch.utils.data import DataLoader
from torchvision import datasets

train_set = datasets.MNIST("data", train=True)
{made}
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = {val}
"""


def _program(val: str, made: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(val=val, made=made)})


_FORGOTTEN = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, train=True, seed=0):
        table = np.load("rows.npy")
        order = np.random.default_rng(seed).permutation(len(table))
        cut = int(0.8 * len(order))
        keep = {keep}
        self.x, self.y = torch.tensor(table[keep, 1:]), torch.tensor(table[keep, 0])

    def __len__(self):
        return len(self.y)

    def load(self, i):
        return self.x[i]

    def __getitem__(self, i):
        return self.load(i), self.y[i]

class Noisy(Rows):
    def __init__(self, train=True):
        super().__init__({handed})
        self.augment = train

    def load(self, i):
        x = super().load(i)
        return x + 0.1 * torch.randn(4) if self.augment else x

train_loader = DataLoader(Noisy(train=True), 32, shuffle=True)
val_loader = DataLoader(Noisy(train=False), 32)
"""
_KEEP = "order[:cut] if train else order[cut:]"


def _forgotten(handed: str, keep: str = _KEEP) -> Run:
    return make_run(sources={"train.py": _FORGOTTEN.format(handed=handed, keep=keep)})


FIRES = {
    "a split that is not handed on": _forgotten(""),
    "a split that is asked for and not taken": _forgotten("train=train", "order[:cut]"),
    "the same loader": _program("train_loader"),
    "the same dataset": _program("DataLoader(train_set, batch_size=32)"),
    "the same tensors": _program(
        "DataLoader(TensorDataset(x, y))\ntrain_loader = DataLoader(TensorDataset(x, y))",
        "from torch.utils.data import TensorDataset",
    ),
    "the training split": _program(
        "DataLoader(val_set, batch_size=32)", 'val_set = datasets.MNIST("data", train=True)'
    ),
}

_DRAWN = """
class Sums(Dataset):
    def __getitem__(self, index):
        return draw()

train_set = Sums()
"""


def _own(made: str, then: str = "") -> Run:
    text = _PROGRAM.format(val="DataLoader(train_set, batch_size=32)", made="")
    text = text.replace('train_set = datasets.MNIST("data", train=True)', made)
    return make_run(sources={"train.py": text + then})


_GRAPH = """
from dgl.dataloading import DataLoader

graph = load_graph()
train_loader = DataLoader(graph, {"user": train_nodes})
val_loader = DataLoader(graph, {"user": val_nodes})
"""

SILENT = {
    "near miss: a split that is handed on": _forgotten("train=train"),
    "near miss: another seed": _forgotten("seed=int(train)"),
    "near miss: to debug": _program(
        "DataLoader(val_set)\nif args.debug:\n    val_loader = train_loader"
    ),
    "near miss: the same loader until there is another": _program(
        "train_loader\nif args.val:\n    val_loader = DataLoader(load(args.val))"
    ),
    "near miss: one dataset that is switched": _own(
        'train_set = News("news.csv")', 'train_set.set_split("val")'
    ),
    "near miss: switched by way of its loader": _own(
        'train_set = News("news.csv")', 'val_loader.dataset.part = "val"'
    ),
    "near miss: examples that are drawn anew": _own(_DRAWN),
    "near miss: the training split of another dataset": _program(
        "DataLoader(val_set, batch_size=32)", 'val_set = datasets.USPS("data", train=True)'
    ),
    "the test split": _program(
        "DataLoader(val_set, batch_size=32)", 'val_set = datasets.MNIST("data", train=False)'
    ),
    "near miss: other tensors": _program(
        "DataLoader(TensorDataset(x_val, y))\ntrain_loader = DataLoader(TensorDataset(x, y))",
        "from torch.utils.data import TensorDataset",
    ),
    "near miss: a loader of another library, with other nodes of one graph": make_run(
        sources={"train.py": _GRAPH}
    ),
    "near miss: other indices": _program("DataLoader(train_set, sampler=val_sampler)"),
    "near miss: a random split": _program(
        "DataLoader(val_set, batch_size=32)",
        "train_set, val_set = random_split(train_set, [0.9, 0.1])",
    ),
}
