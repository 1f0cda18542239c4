"""Labels or indices reach beyond the outputs or rows that they point into."""

from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.facts.index_clashes import IndexClash, index_clashes
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
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
    for story in program_of(run).stories:
        for clash in index_clashes(story):
            holder = clash.holder
            place = clash.event.node if holder is None or holder.site is None else holder.site.node
            if place not in seen and not is_test_file(clash.event.module):
                seen.add(place)
                yield _finding(clash)


def _finding(clash: IndexClash) -> Finding:
    holder = clash.holder
    is_known = holder is not None and holder.site is not None
    built = (cite(holder, "built here"),) if holder is not None and is_known else ()
    is_made = clash.index.site is not None
    numbers = (cite(clash.index, "the numbers come from here"),) if is_made else ()
    return finding(
        clash.text,
        clash.cause,
        holder if holder is not None and is_known else clash.event,
        cite(clash.event, clash.text),
        *built,
        *numbers,
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


def _train(labels: str, outputs: str = "3", more: str = "") -> Run:
    text = _TRAIN.format(labels=labels, outputs=outputs, more=more)
    return make_run(sources={"train.py": text})


def _lookup(rows: int = 50, places: int = 24, shift: str = "") -> Run:
    text = _LOOKUP.format(rows=rows, places=places, shift=shift)
    return make_run(sources={"train.py": text})


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
