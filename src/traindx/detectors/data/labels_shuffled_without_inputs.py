from traindx.analysis.program.training.claims import each_place, finding, location_of, source_text
from traindx.analysis.program.training.row_order import disturbances
from traindx.examples import TRAINING, script, template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("misaligned-labels", "label-noise"))
def check(run: Run) -> Findings:
    """The labels of a batch or a dataset are put in another order, or in part drawn anew, alone.

    ## What it detects
    A loss whose target was put into a random order (`labels[torch.randperm(…)]`, or a shuffle of
    the dataset's labels alone) that the model's input was not; a target of which a random part is
    replaced, as in `torch.where(torch.rand(…) < p, other, labels)`, on the way to the loss.

    ## Why it matters
    The inputs keep their order, so labels belong to other examples: there is nothing to learn but
    the frequency of the classes.

    ## What to do
    Index inputs and labels by one permutation; take the replacement out.

    ## When it is wrong
    A forecast rolls labels along the examples, too, so rolled labels are only a remark. Mixing
    examples permutes inputs too and is left alone; so is code that says by a name that it disturbs
    labels on purpose, and what is no target of a loss: pairs that an estimate of mutual information
    contrasts.
    """
    for found in each_place(run, disturbances, lambda disturbance: location_of(disturbance.value)):
        others = "inputs" if found.what == "Labels" else "labels"
        is_remark = found.how.startswith("moved")
        yield finding(
            f"{found.what} are {found.how} while their {others} stay as they are",
            (found.value, f"`{source_text(found.value)}`"),
            cause="label-noise" if found.how.startswith("replaced") else "misaligned-labels",
            strength=Strength.MODERATE if is_remark else Strength.STRONG,
            hint=Strength.STRONG if is_remark else None,
            is_symptom=not is_remark,
        )


_program = template("""
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, labels in loader:
    {before:pass}
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model({data:data}), {labels:labels})
    loss.backward()
    optimizer.step()
""")

_PAIRS = """
critic = nn.Bilinear(4, 4, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)

def pair(x, y):
    y = y[torch.randperm(len(y))]
    return {pair}

for x, y in loader:
    optimizer.zero_grad()
    (score(pair(x, y)).exp().mean().log() - score((x, y)).mean()).backward()
    optimizer.step()
"""
_ORDER = "order = torch.randperm(len(data))"

_STORED = """
import numpy as np

images, classes = np.load("images.npy"), np.load("classes.npy")
{before}
loader = DataLoader(TensorDataset(torch.tensor(images), torch.tensor(classes)), 32)
"""
_stored = template(_STORED + TRAINING, "before")

_TWO = """
images, classes = torch.load("images.pt"), torch.load("classes.pt")
loader = zip(DataLoader(images, 32, {options}), DataLoader(classes, 32, {options}))
"""
_two = template(_TWO + TRAINING, "options")

_TABLE = """
import pandas as pd

table = pd.read_csv("loans.csv")
{before}
table = table.sample(frac=1)
{after}
x, y = torch.tensor(table.values), torch.tensor(labels)
loader = ((x[i : i + 32], y[i : i + 32]) for i in range(0, len(x), 32))
"""
_table = template(_TABLE + TRAINING, "before", "after")

FIRES = {
    "inputs alone are shuffled": _stored("np.random.shuffle(images)"),
    "each is shuffled by itself": _stored("np.random.shuffle(images); np.random.shuffle(classes)"),
    "inputs alone are taken in an order": _stored("images = images[np.random.permutation(9)]"),
    "two loaders that shuffle": _two("shuffle=True"),
    "the table is shuffled after the labels left it": _table("labels = table.pop('y').values", ""),
    "permuted in the loss": _program(labels="labels[torch.randperm(len(labels))]"),
    "permuted before": _program(f"{_ORDER}; labels = labels[order]"),
    "replaced in part": _program(
        "wrong = torch.rand(len(labels)) < 0.4; "
        "labels = torch.where(wrong, torch.randint(0, 3, labels.shape), labels)"
    ),
    "rolled": _program("labels = labels.roll(1, 0)"),
    "exchanged in part": _program(
        "labels = torch.where(torch.rand(len(labels)) < 0.4, labels.roll(1), labels)"
    ),
}

SILENT = {
    "near miss: what a generator is asked for": script("""
import torch
from torch import nn
from torch.nn import functional as F
make, judge = nn.Linear(9, 4), nn.Linear(4, 5)
optimizer = torch.optim.Adam(make.parameters())
for images, labels in loader:
    wanted = labels[torch.randperm(labels.size(0))]
    code = torch.cat([wanted.clone(), torch.zeros(images.size(0), 1)], dim=1)
    fake = make(torch.cat([images, code], dim=1))
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(judge(fake), wanted).backward()
    optimizer.step()
"""),
    "near miss: two loaders in order": _two("shuffle=False"),
    "near miss: the table is shuffled before": _table("", "labels = table.pop('y').values"),
    "near miss: both are shuffled": _stored(
        "np.random.seed(0); np.random.shuffle(images)\n"
        "np.random.seed(0); np.random.shuffle(classes)"
    ),
    "near miss: pairs are shuffled": _stored(
        "rows = np.concatenate([images, classes[:, None]], 1); np.random.shuffle(rows)\n"
        "images, classes = rows[:, :-1], rows[:, -1]"
    ),
    "as they come": _program(),
    "near miss: both in one order": _program(_ORDER, "data[order]", "labels[order]"),
    "near miss: one seed before each": _program(
        "torch.manual_seed(0); labels = labels[torch.randperm(len(labels))]"
    ),
    "near miss: pairs, for no loss with a target": script(_PAIRS, pair="(x, y)"),
    "near miss: pairs, joined": script(_PAIRS, pair="torch.cat([x, y], dim=1)"),
    "near miss: pairs, scored by a model": script(_PAIRS, pair="critic(x, y)"),
    "near miss: a selection": _program("keep = labels > 0", "data[keep]", "labels[keep]"),
    "near miss: a mask that is not random": _program(
        "labels = torch.where(mask, labels, torch.tensor(-100))"
    ),
    "near miss: rolled along the sequence": _program("labels = labels.roll(-1, dims=1)"),
    "near miss: on purpose": _program(
        "noisy = torch.rand(len(labels)) < 0.4; labels = torch.where(noisy, labels.roll(1), labels)"
    ),
    "near miss: masked language modelling": _program(
        "masked = torch.bernoulli(rate).bool(); labels = torch.where(masked, labels, -100)"
    ),
    "near miss: labels dropped for guidance": _program(
        "drop = torch.rand(len(labels)) < 0.1; labels = torch.where(drop, empty, labels)"
    ),
}
