"""Data are sorted by their labels and then cut in two."""

import re

from traindx.analysis.program.execution.values import Part, Value
from traindx.analysis.program.training.claims import cite, finding, function_name, source_text
from traindx.analysis.program.training.data import Role
from traindx.analysis.program.training.kinds import names_of, words_of
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.analysis.program.training.splits import Division, class_labels, divisions, roles_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

SORTS = ("argsort", "sort", "sorted", "sort_values")
LABELS = frozenset({"y", "label", "labels", "target", "targets", "class", "classes", "category"})
# parts that are meant to have classes of their own
ON_PURPOSE = re.compile(
    r"client|federat|non_?iid|shard|worker|node|task|incremental|continual|unseen|novel|zero_?shot"
    r"|few_?shot|open_?set|ood|outlier|anomal",
    re.IGNORECASE,
)


@detector(needs=("source",), suggests=("distribution-shift",))
def check(run: Run) -> Findings:
    """Data that were put in the order of their labels are split at an index.

    ## What it detects
    Data taken in the order of an `argsort` of the labels (or sorted by a column of them) and then
    cut into `[:n]` and `[n:]` without being shuffled in between, where the parts are for training
    and for validation or testing, or are made in a function that splits.

    ## Why it matters
    One part holds other classes than the other. What is learnt from the first says nothing about
    the second.

    ## What to do
    Shuffle before the split, or split within each class: `train_test_split(…, stratify=labels)`.

    ## When it is wrong
    A study of classes that were never seen splits by class on purpose, and so does one of clients
    or tasks that differ; where names say so, or name no such parts, the rule is silent.
    """
    program = program_of(run)
    for story in program.stories:
        for division in divisions(story):
            order = None if division.order is not None else _order(program, division.whole)
            if order is not None and _is_held_out(story, division):
                yield _finding(division, order)
                return


def _order(program: Program, value: Value) -> Value | None:
    """What put data in the order of their labels."""
    operation = operation_of(value)
    if operation is None:
        return None
    if operation.name == "getitem" and len(operation.operands) > 1:
        return _sorting(program, operation.operands[1])
    if operation.name == "sort_values":
        return _sorting(program, value)
    return None


def _sorting(program: Program, value: Value) -> Value | None:
    if isinstance(value, Part) and value.key in (1, "indices"):  # of `labels.sort()`
        value = value.of
    operation = operation_of(value)
    if operation is None or operation.name not in SORTS:
        return None
    given = [*operation.operands, *operation.settings.values()]
    labels = class_labels(program)
    is_of_labels = any(_is_label(v) or any(v is label for label in labels) for v in given)
    return value if is_of_labels else None


def _is_label(value: Value) -> bool:
    """Tell whether a value, or the column it names, is of labels."""
    text = getattr(value, "value", None)
    names = [text] if isinstance(text, str) else names_of(value)
    return any(words_of(name) & LABELS for name in names)


def _is_held_out(story: Story, division: Division) -> bool:
    """Tell whether a cut parts what is learnt from what is judged by, and not by design."""
    around = function_name(division.tail)
    made = [division.head, division.tail, *story.made_from(division.tail)]
    made += story.made_from(division.head)
    names = [name for value in made for name in names_of(value)]
    if any(ON_PURPOSE.search(name) for name in (*names, around)):
        return False
    roles = roles_of(story, division.head) | roles_of(story, division.tail)
    return Role.HELD_OUT in roles or "split" in around.lower()


def _finding(division: Division, order: Value) -> Finding:
    name = division.whole.called("the data")
    cut = source_text(division.tail)
    return finding(
        f"`{name}` is sorted by label and then cut in two: each part has its own classes",
        "distribution-shift",
        division.whole,
        cite(order, "in the order of the labels"),
        cite(division.tail, f"`{cut}`: the later classes"),
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn

images, labels = load()
order = {order}
images, labels = images[order], labels[order]
{then}
train = torch.utils.data.TensorDataset(images[:1000], labels[:1000])
test = torch.utils.data.TensorDataset(images[{start}:], labels[{start}:])
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in torch.utils.data.DataLoader(train, shuffle=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
"""


def _program(order: str, then: str = "", start: str = "1000") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(order=order, then=then, start=start)})


FIRES = {
    "a method": _program("labels.argsort()"),
    "both at once": _program(
        "labels.argsort()", "x_train, x_test = images[:1000], images[1000:]", start="0"
    ),
    "a function": _program("torch.argsort(labels)"),
}

SILENT = {
    "near miss: clients that differ": _program(
        "labels.argsort()", "clients = [images[:1000], images[1000:]]", start="0"
    ),
    "near miss: classes that were never seen": _program(
        "labels.argsort()", "test_unseen = images[1000:]", start="0"
    ),
    "near miss: tasks one after the other": _program(
        "labels.argsort()", "first, second = images[:1000], images[1000:]", start="0"
    ),
    "shuffled": _program("torch.randperm(len(labels))"),
    "near miss: by time": _program("times.argsort()"),
    "near miss: shuffled afterwards": _program(
        "labels.argsort()", "mix = torch.randperm(9)\nimages, labels = images[mix], labels[mix]"
    ),
    "near miss: the cut is elsewhere": _program("labels.argsort()", start="0"),
}
