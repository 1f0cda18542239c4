from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.repeated_data import repeated_data
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


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
    for found in each_place(run, repeated_data, lambda found: found.node):
        yield finding(
            f"`{found.name}` holds training data: {found.says}",
            (found.place, f"{found.name}: {found.says}"),
            at=found.held,
        )


_program = template("""
from torchvision import datasets

train_set = {data:datasets.MNIST("data", train=True)}
{made:}
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = {val:DataLoader(train_set, batch_size=32)}
{then:}
""")
_OF_ITS_OWN = "DataLoader(val_set, batch_size=32)"
_forgotten = template("""
import numpy as np

class Rows(Dataset):
    def __init__(self, train=True, seed=0):
        table = np.load("rows.npy")
        order = np.random.default_rng(seed).permutation(len(table))
        cut = int(0.8 * len(order))
        keep = {keep:order[:cut] if train else order[cut:]}
        self.x, self.y = torch.tensor(table[keep, 1:]), torch.tensor(table[keep, 0])

    def __len__(self):
        return len(self.y)

    def load(self, i):
        return self.x[i]

    def __getitem__(self, i):
        return self.load(i), self.y[i]

class Noisy(Rows):
    def __init__(self, train=True):
        super().__init__({handed:})
        self.augment = train

    def load(self, i):
        x = super().load(i)
        return x + 0.1 * torch.randn(4) if self.augment else x

train_loader = DataLoader(Noisy(train=True), 32, shuffle=True)
val_loader = DataLoader(Noisy(train=False), 32)
""")

FIRES = {
    "a split that is not handed on": _forgotten(),
    "a split that is asked for and not taken": _forgotten(handed="train=train", keep="order[:cut]"),
    "the same loader": _program(val="train_loader"),
    "the same dataset": _program(),
    "the same tensors": _program(
        val="DataLoader(TensorDataset(x, y))\ntrain_loader = DataLoader(TensorDataset(x, y))"
    ),
    "the training split": _program(
        val=_OF_ITS_OWN, made='val_set = datasets.MNIST("data", train=True)'
    ),
}

_DRAWN = """
class Sums(Dataset):
    def __getitem__(self, index):
        return draw()

train_set = Sums()
"""

SILENT = {
    "near miss: a split that is handed on": _forgotten(handed="train=train"),
    "near miss: another seed": _forgotten(handed="seed=int(train)"),
    "near miss: to debug": _program(
        val="DataLoader(val_set)\nif args.debug:\n    val_loader = train_loader"
    ),
    "near miss: the same loader until there is another": _program(
        val="train_loader\nif args.val:\n    val_loader = DataLoader(load(args.val))"
    ),
    "near miss: one dataset that is switched": _program(
        data='News("news.csv")', then='train_set.set_split("val")'
    ),
    "near miss: switched by way of its loader": _program(
        data='News("news.csv")', then='val_loader.dataset.part = "val"'
    ),
    "near miss: examples that are drawn anew": _program(made=_DRAWN),
    "near miss: the training split of another dataset": _program(
        val=_OF_ITS_OWN, made='val_set = datasets.USPS("data", train=True)'
    ),
    "the test split": _program(
        val=_OF_ITS_OWN, made='val_set = datasets.MNIST("data", train=False)'
    ),
    "near miss: other tensors": _program(
        val="DataLoader(TensorDataset(x_val, y))\ntrain_loader = DataLoader(TensorDataset(x, y))"
    ),
    "near miss: a loader of another library, with other nodes of one graph": script("""
from dgl.dataloading import DataLoader

graph = load_graph()
train_loader = DataLoader(graph, {"user": train_nodes})
val_loader = DataLoader(graph, {"user": val_nodes})
"""),
    "near miss: other indices": _program(val="DataLoader(train_set, sampler=val_sampler)"),
    "near miss: a random split": _program(
        val=_OF_ITS_OWN, made="train_set, val_set = random_split(train_set, [0.9, 0.1])"
    ),
}
