from traindx.analysis.program.training.claims import finding, node_of, set_argument
from traindx.analysis.program.training.program import each_place, program_of
from traindx.analysis.program.training.unshuffled_loaders import (
    labels_by_class,
    unshuffled_loaders,
)
from traindx.examples import template
from traindx.registry import Findings, Run, Strength, detector

CAUSE = "unshuffled-training-data"


@detector(needs=("source",), suggests=("unshuffled-training-data",))
def check(run: Run) -> Findings:
    """A data loader for training neither shuffles nor samples.

    ## What it detects
    A loader that training consumes, with `shuffle=False` or without the option, and without a
    sampler, over a dataset made in sight. Folders of images by class are sorted by class for
    certain, as are lists that are filled class by class; other datasets with random access are only
    remarked, unless the loader for held-out data shuffles: the two are swapped. Also labels that
    were joined class by class (`np.concatenate([np.zeros(n), np.ones(n)])`) and reach the loss in
    that order, with or without a loader.

    ## Why it matters
    With data in the order of its classes every batch holds one class: the loss saws up and down and
    the model forgets each class while it sees the next.

    ## What to do
    `DataLoader(…, shuffle=True)`, or a sampler.

    ## When it is wrong
    Sequences that must stay in order, and data that was shuffled beforehand, are right without it;
    a dataset in whose making random numbers have a part is left alone, and so is one that is split
    at random. A loader that only reads the training set (for features, for a score beside the
    shuffled loader) is left alone, too.
    """
    for by_class in labels_by_class(program_of(run)):
        yield finding(
            "The training data are in the order of their classes and never shuffled",
            (by_class.labels, "labels are joined class by class here"),
            (by_class.batches, "batches are taken in that order here"),
            at=by_class.batches,
        )
    for found in each_place(run, unshuffled_loaders, lambda found: node_of(found.loader)):
        yield finding(
            f"The training loader does not shuffle: {found.says}",
            (found.loader, "no shuffle=True and no sampler here"),
            strength=Strength.STRONG if found.is_harmful else Strength.MODERATE,
            is_symptom=found.is_harmful,
            hint=None if found.is_harmful else Strength.MODERATE,
            patch=set_argument(found.loader, "shuffle", "True"),
        )


_program = template("""
from torchvision import datasets

data = datasets.{dataset:ImageFolder("train")}
{name:train_loader} = DataLoader(data, batch_size=32{options:})
{then:}
""")
_FEATURES = """
@torch.no_grad()
def extract(loader):
    return torch.cat([net(x) for x, _ in loader])

bank = extract(train_loader)
"""
_TRAINING = """
train_reader = DataLoader(data, batch_size=99)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

train(train_loader)
score(train_reader)
"""
_joined = template("""
import numpy as np

x = torch.tensor(np.concatenate([cats, dogs]))
y = torch.tensor(np.concatenate([np.zeros(len(cats)), np.ones(len(dogs))]))
{order:}
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    for start in range(0, len(x), 32):
        optimizer.zero_grad()
        scores = model(x[start : start + 32])
        torch.nn.functional.cross_entropy(scores, y[start : start + 32].long()).backward()
        optimizer.step()
""")
_MIXED = "order = torch.randperm(len(x))\nx, y = x[order], y[order]"

FIRES = {
    "joined class by class, without a loader": _joined(),
    "a folder by class": _program(),
    "said so": _program(options=", shuffle=False"),
    "handed to a function that trains": _program(then=_TRAINING),
    "a remark": _program(dataset='MNIST("data", train=True)'),
}

SILENT = {
    "near miss: joined class by class, then mixed": _joined(_MIXED),
    "shuffled": _program(options=", shuffle=True"),
    "near miss: a sampler": _program(options=", sampler=sampler"),
    "near miss: decided at run time": _program(options=", shuffle=sampler is None"),
    "near miss: read for its features": _program(then=_FEATURES),
    "near miss: scored beside the shuffled one": _program(options=", shuffle=True", then=_TRAINING),
    "near miss: validation": _program(dataset="ImageFolder('val')", name="val_loader"),
}
