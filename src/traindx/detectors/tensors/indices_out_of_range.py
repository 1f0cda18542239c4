from traindx.analysis.errors.passed_lines import unless_passed
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import cited, finding, line_of, node_of, shown
from traindx.analysis.program.training.facts.index_clashes import index_clashes
from traindx.analysis.program.training.program import program_of
from traindx.examples import template
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
    Labels that are filtered out of sight are not known and left alone, and so is a line that is
    known to have run.
    """
    seen: set[object] = set()
    for clash in (c for story in program_of(run).stories for c in index_clashes(story)):
        place = node_of(clash.holder) or clash.event.node
        if place not in seen and not is_test_file(clash.event.module):
            seen.add(place)
            found = finding(
                clash.text,
                (clash.event, clash.text),
                *cited(clash.holder, "built here"),
                *cited(clash.index, "the numbers come from here"),
                cause=clash.cause,
                at=shown(clash.holder, clash.event),
            )
            yield from unless_passed(run, found, line_of(clash.event))


_train = template("""
import numpy as np
from sklearn.datasets import load_digits

NAMES = ["cat", "dog", "owl"]
CODES = {{name: i + 1 for i, name in enumerate(NAMES)}}
ALL, DIGITS, FIRST = load_digits().target, [1, 4, 7], [0, 1, 2]
OFTEN = [c for c, n in counts.items() if n >= 50]
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, {outputs:3}))
labels = {labels}
loader = DataLoader(TensorDataset(torch.randn(len(labels), 8), labels), batch_size=16)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y{more:})
    loss.backward()
""")
_LOOKUP = """
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

_lookup = template(_LOOKUP, rows=50, places=24, shift="")

_KEPT = "torch.tensor(ALL[np.isin(ALL, {kept})])"
_LISTED = "torch.tensor([CODES[n] for n in NAMES] * 20)"

FIRES = {
    "labels that begin at one": _train(_LISTED, "len(NAMES)"),
    "drawn beyond the outputs": _train("torch.randint(0, 5, (400,))"),
    "ten digits, nine outputs": _train("torch.tensor(load_digits().target)", "9"),
    "some classes are kept with their numbers": _train(_KEPT.format(kept="DIGITS"), "len(DIGITS)"),
    "kept by how often they come": _train(_KEPT.format(kept="OFTEN"), "len(OFTEN)"),
    "different labels are counted": _train(
        "torch.from_numpy(np.random.choice([0, 2, 7], 400))", "len(np.unique([0, 2, 7]))"
    ),
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
    "near miss: classes are kept and numbered anew": _train(
        "torch.tensor([DIGITS.index(t) for t in ALL[np.isin(ALL, DIGITS)]])", "len(DIGITS)"
    ),
    "near miss: the first classes are kept": _train(_KEPT.format(kept="FIRST"), "len(FIRST)"),
    "as many rows as tokens": _lookup(),
    "near miss: a row for padding": _lookup(rows=51, shift=" + 1"),
}
