from traindx.analysis.program.training.claims import each_place, finding, source_text
from traindx.analysis.program.training.overlap_scores import halved_overlaps, lopsided_unions
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """An overlap of predictions and labels is divided by the sum of both areas.

    ## What it detects
    A count of where predictions and labels agree, divided by the count of the predictions plus that
    of the labels, or the diagonal of a confusion matrix by the sums of its rows and columns,
    without taking the overlap off the sum (IoU) and without doubling it (Dice). Also a union that
    adds the rows, or the columns, of the matrix twice.

    ## Why it matters
    The value of a perfect prediction is 0.5. Models are compared and stopped by a number that means
    nothing.

    ## What to do
    IoU: `overlap / (predicted + labelled - overlap)`. Dice: `2 * overlap / (predicted + labelled)`.

    ## When it is wrong
    Where the quotient is doubled later, nothing is said.
    """
    for event in each_place(run, halved_overlaps, lambda found: found.node):
        yield finding(
            "The overlap is divided by the sum of both areas: a perfect prediction scores 0.5",
            (event, f"`{source_text(event)}`"),
        )
    for event in each_place(run, lopsided_unions, lambda found: found.node):
        yield finding(
            "The union adds one sum of the confusion matrix twice: rows and columns are meant",
            (event, f"`{source_text(event)}`"),
        )


_metric = template("""
def overlap(model, loader):
    found = []
    for image, mask in loader:
        pred = model(image) > 0
        hit = (pred & mask).sum()
        found.append({value:})
    return sum(found) / len(found)
""")
_grown = template("""
class Score:
    def __init__(self, classes):
        self.hit = torch.zeros(classes)
        self.found = torch.zeros(classes)
        self.real = torch.zeros(classes)

    def add(self, pred, true):
        self.hit += torch.bincount(pred[pred == true].flatten())
        self.found += torch.bincount(pred.flatten())
        self.real += torch.bincount(true.flatten())

    def value(self):
        both = self.found + self.real{less:}
        return self.hit / both.clamp(min=1)

score = Score(3)
for image, true in test_loader:
    score.add(model(image).argmax(1), true)
print(score.value())
""")
_matrix = template("""
import numpy as np

def scores(model, loader, classes):
    matrix = np.zeros((classes, classes))
    for x, y in loader:
        guess = model(x).argmax(1)
        np.add.at(matrix, (y.numpy().ravel(), guess.numpy().ravel()), 1)
    hit = np.diag(matrix)
    return (hit / (matrix.sum(0) + matrix.sum(axis=1){less:})).mean()
""")

FIRES = {
    "of a confusion matrix": _matrix(),
    "masks": _metric("hit / (pred.sum() + mask.sum() + 1e-6)"),
    "counts over a data set": _grown(),
}

SILENT = {
    "near miss: of a confusion matrix, less the overlap": _matrix(" - hit"),
    "the overlap is taken off": _metric("hit / (pred.sum() + mask.sum() - hit)"),
    "near miss: Dice": _metric("2 * hit / (pred.sum() + mask.sum())"),
    "near miss: Dice, doubled later": _metric("hit / (pred.sum() + mask.sum()) * 2"),
    "near miss: one count that grows": script(
        "n = total = 0\nfor x, y in test_loader:\n"
        "    n += ((model(x) == y) * (y != 0)).sum()\n    total += (y != 0).sum()\n"
        "print(n / total)\n"
    ),
    "near miss: recall": _metric("hit / mask.sum()"),
    "near miss: an error over both": _metric("(pred - mask).sum() / (pred.sum() + mask.sum())"),
    "counts over a data set, the overlap taken off": _grown(" - self.hit"),
}
