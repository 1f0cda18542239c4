"""The training data is cut down to a handful of examples, and validation stays behind."""

import numpy as np

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.claims import cite as cite_source
from traindx.analysis.program.training.claims import source_text
from traindx.analysis.program.training.loaders import different_numbers
from traindx.analysis.program.training.phases import splits_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import decay, make_run
from traindx.model.findings import Finding, Strength, cite, finding
from traindx.model.run import Floats, Series
from traindx.registry import Findings, Run, detector

CAUSE = "overfitting"
HANDFUL = 100  # examples
BEHIND = 1.2  # the validation loss over that of training, at the end
WIDENED = 1.1  # what the gap is at the end over what it was at the start
ENOUGH = 5  # evaluations


@detector(needs=("source", "loss", "*/val*"), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A subset of a hundred examples or fewer is trained on, and validation does not keep up.

    ## What it detects
    A `Subset` of training data, or a `select` of it, whose indices are written down and are a
    hundred different ones at most, however often each is repeated; and a validation loss that ends
    a fifth above that of training, after a start at which they were nearer.

    ## Why it matters
    Subsets are made to try out a program. One that is left in, or repeated to fill an epoch, is
    learnt by heart.

    ## What to do
    Train on all of the data. If there is no more: augmentation, a smaller model, early stopping.

    ## When it is wrong
    Learning from a few examples may be the task, and a gap its price.
    """
    train, val = run.objective(), run.main_loss("val")
    if train is None or val is None or len(val.finite()) < ENOUGH or len(train.finite()) < ENOUGH:
        return
    if not _stays_behind(train.finite().values, val.finite().values):
        return
    for story in program_of(run).stories:
        for event in story.events:
            count = different_numbers(_indices(event))
            if count is not None and count <= HANDFUL and _is_training(story, event):
                yield _finding(event, count, train.finite(), val.finite())
                return


def _stays_behind(train: Floats, val: Floats) -> bool:
    first, last = (_level(train, part) for part in (slice(0, 1), slice(-1, None)))
    early, late = (_level(val, part) for part in (slice(0, 1), slice(-1, None)))
    if min(first, last, early) <= 0.0 or late < BEHIND * last:
        return False
    return late / last > WIDENED * early / first


def _level(values: Floats, part: slice) -> float:
    """The middle of the first or of the last quarter of a curve."""
    return float(np.median(np.concatenate(np.array_split(values, 4)[part])))


def _indices(event: ProgramEvent) -> Value | None:
    """Which examples a call leaves of a dataset."""
    if event.name.rpartition(".")[2] == "Subset":
        return event.argument("indices", 1)
    return event.argument("indices", 0) if event.name == ".select" else None


def _is_training(story: Story, event: ProgramEvent) -> bool:
    """Tell whether what is cut down is training data by its names, before or after."""
    if event.result is None:
        return False
    made = [event.result, *story.made_from(event.result)]
    return {word for value in made for word in splits_of(value)} == {"train"}


def _finding(event: ProgramEvent, count: int, train: Series, val: Series) -> Finding:
    behind = f"{val.origin.name} ends at {val.last:.4g}, {train.origin.name} at {train.last:.4g}"
    return finding(
        f"Only {count} different training examples are used, and the validation loss stays "
        "above the training loss",
        {CAUSE: Strength.STRONG},
        cite_source(event, f"`{source_text(event)}` keeps {count} different examples"),
        cite(val, behind, -1, val=val.last, train=train.last),
        onset=val.steps[0],
        place=event.location,
    )


def _run(code: str, ends: float = 0.3) -> Run:
    series = {
        "loss/train": decay(40, 2.0, 0.1, noise=0.0),
        "loss/val": decay(40, 2.0, ends, noise=0.0),
    }
    text = f"import torch\nfrom torch.utils.data import DataLoader, Subset\n\n{code}\n"
    return make_run(series, sources={"train.py": text})


FIRES = {
    "a try-out left in": _run("train_loader = DataLoader(Subset(train_set, range(32)))"),
    "repeated to fill an epoch": _run("train_set = Subset(data, list(range(24)) * 25)"),
    "a selection": _run("train_set = data['train'].select(range(50))"),
}

SILENT = {
    "a subset of many": _run("train_set = Subset(data, range(50000))"),
    "near miss: a handful, and validation keeps up": _run(
        "train_set = Subset(data, range(32))", ends=0.1
    ),
    "near miss: a handful to look at": _run("preview = Subset(val_set, range(32))"),
    "near miss: indices of a split": _run("train_set = Subset(data, indices[:split])"),
}
