from traindx.analysis.program.training.claims import finding, program_of, source_text
from traindx.analysis.program.training.shuffled_copies import dropped_shuffles, unread_orders
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("unshuffled-training-data",))
def check(run: Run) -> Findings:
    """A shuffle returns a copy, and nothing keeps it.

    ## What it detects
    `rng.permutation(indices)`, `random.sample(rows, len(rows))`, `sklearn.utils.shuffle(x, y)`,
    `frame.sample(frac=1)` or `dataset.shuffle()` as a statement of its own, in a program that
    trains and shuffles its data in no other way. Also a permutation that every epoch draws and
    that no batch is taken by: only its length is read.

    ## Why it matters
    These return a shuffled copy and leave their argument as it was. The data stay in the order of
    the files, which is often the order of the classes, in every epoch.

    ## What to do
    Keep the result (`indices = rng.permutation(indices)`), or shuffle in place (`rng.shuffle`).

    ## When it is wrong
    A draw whose only purpose is to move the random state on is harmless; nobody needs one.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event in dropped_shuffles(story):
            if event.node in seen:
                continue
            seen.add(event.node)
            yield finding(
                f"The shuffled copy of `{source_text(event)}` is thrown away",
                (event, "returns a shuffled copy; the data keep their order"),
            )
        for event in unread_orders(story):
            if event.node not in seen:
                seen.add(event.node)
                yield finding(
                    f"No batch is taken by the order that `{source_text(event)}` draws",
                    (event, "only its length is used; the data keep their order"),
                )


_train = template("""
import random
import numpy as np
from sklearn.utils import shuffle

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rng = np.random.default_rng(0)
order = np.arange(len(x))
for epoch in range(3):
    {mix}
    for i in {over:np.array_split(order, 10)}:
        loss = torch.nn.functional.cross_entropy(model(x[i]), y[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""")

_ORDERED = """
import torch
from torch import nn

model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(9):
    order = torch.randperm(len(x))
    for i in range(0, len(order), 8):
        loss = nn.functional.cross_entropy(model(x[{rows}]), y[{rows}])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_ordered = template(_ORDERED, "rows")

FIRES = {
    "an order that no batch is taken by": _ordered("i : i + 8"),
    "a permutation of a generator": _train("rng.permutation(order)"),
    "a permutation of numpy": _train("np.random.permutation(order)"),
    "a sample of all": _train("random.sample(rows, len(rows))"),
    "sklearn": _train("shuffle(x, y, random_state=0)"),
    "by an index": _train("x[torch.randperm(len(x))]"),
}

SILENT = {
    "near miss: batches are taken by the order": _ordered("order[i : i + 8]"),
    "kept": _train("order = rng.permutation(order)"),
    "near miss: in place": _train("rng.shuffle(order)"),
    "near miss: the loader shuffles": _train(
        "rng.permutation(order)", over="DataLoader(order, batch_size=8, shuffle=True)"
    ),
    "near miss: handed on": _train("order[:] = rng.permutation(order)"),
    "near miss: a number": _train("np.random.permutation(5)"),
}
