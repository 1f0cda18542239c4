from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import cite, cited, finding, node_of, shown
from traindx.analysis.program.training.facts.index_clashes import index_clashes
from traindx.analysis.program.training.program import program_of
from traindx.examples import form
from traindx.registry import Findings, Run, detector


@detector(
    needs=("source",),
    suggests=(
        "output-size-mismatch", "label-out-of-range", "index-out-of-range", "vocabulary-mismatch",
    ),
)  # fmt: skip
def check(run: Run) -> Findings:
    """A class index or a lookup is larger than the model has outputs or rows.

    ## What it detects
    The whole numbers that labels and indices reach are followed from where they are made: drawn at
    random, counted, looked up in a table of classes, loaded from a data set that is known. A loss
    whose labels reach beyond the outputs of the model, labels that begin at 1, and an embedding
    that is asked for a row that it does not have are found.

    ## Why it matters
    The first such number fails with "Target 3 is out of bounds" or "index out of range in self"; on
    a GPU with a device-side assert in a place far off.

    ## What to do
    Give the last layer as many outputs as there are classes, the embedding as many rows as there
    are tokens, padding included, or let labels begin at 0.

    ## When it is wrong
    Labels that are filtered out of sight are not known and left alone. A run that went through
    steps has shown that its indices fit.
    """
    if run.has_trained or run.failures:
        return
    seen: set[object] = set()
    for clash in (c for story in program_of(run).stories for c in index_clashes(story)):
        place = node_of(clash.holder) or clash.event.node
        if place not in seen and not is_test_file(clash.event.module):
            seen.add(place)
            yield finding(
                clash.text,
                clash.cause,
                shown(clash.holder, clash.event),
                cite(clash.event, clash.text),
                *cited(clash.holder, "built here"),
                *cited(clash.index, "the numbers come from here"),
                is_symptom=True,
            )


_TRAIN = """
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NAMES = ["cat", "dog", "owl"]
CODES = {{name: i + 1 for i, name in enumerate(NAMES)}}
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, {outputs}))
labels = {labels}
loader = DataLoader(TensorDataset(torch.randn(len(labels), 8), labels), batch_size=16)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y{more})
    loss.backward()
"""
_LOOKUP = """
import torch
from torch import nn

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding({rows}, 16)
        self.places = nn.Embedding({places}, 16)
        self.head = nn.Linear(16, 50)

    def forward(self, ids):
        here = torch.arange(ids.size(1))
        return self.head(self.tokens(ids) + self.places(here))

model = Reader()
ids = torch.randint(0, 50, (64, 24)){shift}
loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), (ids % 50).flatten())
"""
_train = form(_TRAIN, "labels", outputs="3", more="")

_lookup = form(_LOOKUP, rows=50, places=24, shift="")

_LISTED = "torch.tensor([CODES[n] for n in NAMES] * 20)"

FIRES = {
    "labels that begin at one": _train(_LISTED, "len(NAMES)"),
    "drawn beyond the outputs": _train("torch.randint(0, 5, (400,))"),
    "ten digits, nine outputs": _train("torch.tensor(load_digits().target)", "9"),
    "a token too many": _lookup(rows=49),
    "shifted for padding": _lookup(shift=" + 1"),
    "a place too many": _lookup(places=16),
}

SILENT = {
    "as many outputs as labels": _train("torch.randint(0, 3, (400,))"),
    "near miss: labels that begin at one, shifted": _train(f"{_LISTED} - 1", "len(NAMES)"),
    "near miss: an output for the background": _train(_LISTED, "len(NAMES) + 1"),
    "near miss: folded into the outputs": _train("torch.randint(0, 9, (400,)) % 3"),
    "near miss: not counted": _train("torch.full((64,), 7)", more=", ignore_index=7"),
    "near miss: what is not counted is out of sight": _train(
        "torch.full((64,), 7)", more=", ignore_index=args.ignored"
    ),
    "as many rows as tokens": _lookup(),
    "near miss: a row for padding": _lookup(rows=51, shift=" + 1"),
}
