from traindx.analysis.program.training.claims import each_place, finding, node_of, shown
from traindx.analysis.program.training.empty_feeds import empty_feeds
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("empty-validation",))
def check(run: Run) -> Findings:
    """A loader for validation or testing never gives a batch.

    ## What it detects
    A loader of held-out data over something that is empty whatever the data are: a list that is
    chosen by a comparison that is never true, of a text with a number or with a member of an
    `Enum`, a slice that begins where the rows end; fewer rows than a batch has, with
    `drop_last=True` or in a loop over whole batches. Rows are counted through splits, slices and
    the data sets of scikit-learn and torchvision.

    ## Why it matters
    Nothing is validated, and the score is 0, NaN or a crash; what was to be held out is trained on.

    ## What to do
    Compare values of one type: `int(row["patient"])`, `Role.USER.value`. Assert that no part of a
    split is empty.

    ## When it is wrong
    A list that is filled out of sight is left alone.
    """
    for found in each_place(run, empty_feeds, lambda found: node_of(found.at)):
        yield finding(
            f"`{found.name}` gives no batch: {found.reason}",
            (shown(found.data, found.at), found.reason),
            (found.at, "it is read here"),
            at=found.at,
        )


_program = template("""
import csv
import numpy as np

rows = list(csv.DictReader(open("patients.csv")))
held_out = set(np.random.default_rng(0).permutation(60)[:12].tolist())
{split}
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
train_loader = DataLoader(train, batch_size=8, shuffle=True, collate_fn=collate)
val_loader = DataLoader(val, batch_size=8, collate_fn=collate{more:})
for epoch in range(5):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            right = (model(x).argmax(1) == y).sum()
""")
_LISTS = """
train = [r for r in rows if {id} not in held_out]
val = [r for r in rows if {id} in held_out]
"""
_ENUM = """
import json
from enum import Enum

class Part(Enum):
    TRAIN = "train"
    TEST = "test"

rows = [json.loads(line) for line in open("rows.jsonl")]
train = [r for r in rows if r["part"] != Part.TEST]
val = [r for r in rows if r["part"] == Part.TEST{value}]
"""

FIRES = {
    "a slice behind the last row": _program("cut = len(rows)\ntrain, val = rows[:cut], rows[cut:]"),
    "fewer rows than a batch": _program(
        "train, val = torch.utils.data.random_split(rows, [95, 5])", ", drop_last=True"
    ),
    "a share of a small set, in whole batches": _program(
        "from sklearn.datasets import load_wine\n"
        "rows = load_wine().data\nn_val = len(rows) // 25\n"
        "train, val = rows[n_val:], rows[:n_val]",
        ", drop_last=True",
    ),
    "texts of a CSV file in a set of numbers": _program(_LISTS.format(id='r["patient"]')),
    "in a loop": _program("""
train, val = [], []
for row in rows:
    if row["patient"] in held_out:
        val.append(row)
    else:
        train.append(row)
"""),
    "an enumeration's member and a text": _program(_ENUM.format(value="")),
    "numbers written as texts": _program(
        'held_out = {"3", "7"}\n'
        "train = [r for i, r in enumerate(rows) if len(r) > 0]\n"
        'val = [r for r in rows if int(r["patient"]) in held_out]'
    ),
}

SILENT = {
    "near miss: numbers in a set of numbers": _program(_LISTS.format(id='int(r["patient"])')),
    "near miss: the value of a member": _program(_ENUM.format(value=".value")),
    "near miss: members that are texts": _program(
        _ENUM.format(value="").replace("(Enum)", "(str, Enum)")
    ),
    "near miss: texts in a set of texts": _program(
        'held_out = {f"{i}" for i in range(12)}\n' + _LISTS.format(id='r["patient"]')
    ),
    "near miss: ids out of sight": _program(
        "held_out = read_ids()\n" + _LISTS.format(id='r["patient"]')
    ),
    "near miss: filled elsewhere": _program("train, val = [], []\nfill(rows, train, val)"),
}
