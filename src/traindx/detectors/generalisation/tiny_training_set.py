from traindx.analysis.metrics.validation import stays_behind
from traindx.analysis.program.training.claims import cite as cite_source
from traindx.analysis.program.training.claims import each_place, source_text
from traindx.analysis.program.training.loaders import training_subsets
from traindx.examples import decay, make_run
from traindx.registry import Findings, Run, Strength, cite, detector, finding

CAUSE = "overfitting"
HANDFUL = 100  # examples
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
    train, val = train.finite(), val.finite()
    if not stays_behind(train.values, val.values):
        return
    for event, count in each_place(
        run, training_subsets, lambda subset: (subset[0].node, subset[1])
    ):
        if count <= HANDFUL:
            behind = (
                f"{val.origin.name} ends at {val.last:.4g}, {train.origin.name} at {train.last:.4g}"
            )
            yield finding(
                f"Only {count} different training examples are used, and the validation loss stays "
                "above the training loss",
                {CAUSE: Strength.STRONG},
                cite_source(event, f"`{source_text(event)}` keeps {count} different examples"),
                cite(val, behind, -1, val=val.last, train=train.last),
                onset=val.steps[0],
                place=event.location,
            )
            return


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
