from traindx.analysis.program.training.claims import cite, each_place, finding, site_of
from traindx.analysis.program.training.file_order import out_of_step
from traindx.analysis.program.training.table_order import unpaired_rows
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("misaligned-labels",))
def check(run: Run) -> Findings:
    """The files of inputs are in another order than the labels that go with them.

    ## What it detects
    Files sorted as text (`x_10` before `x_2`) beside labels in the order of a file, in a program
    that writes these files under a number without leading zeros; and two lists of files, paired by
    position, of which one is sorted and the other is not, or is sorted by another key. Rows of a
    table that are sorted or grouped, beside labels as they were read.

    ## Why it matters
    Inputs get the labels of other examples. Nothing fails, and there is little to learn.

    ## What to do
    Find the label by the name of the file; or sort both by the same key:
    `sorted(files, key=lambda p: int(p.stem.split("_")[-1]))`.

    ## When it is wrong
    Names with leading zeros sort as numbers do; where the program does not say how files are
    named, the rule is silent.
    """
    for found in each_place(run, out_of_step, lambda found: site_of(found.inputs.value).node):
        one, other = found.inputs, found.labels
        evidence = [cite(one.value, f"inputs: {one.order.value}")]
        if other.value.site is not None:
            evidence.append(cite(other.value, f"labels: {other.order.value}"))
        if found.written is not None:
            evidence.append(
                cite(found.written, "numbers without leading zeros, so 10 sorts before 2")
            )
        claim = f"Inputs are {one.order.value}, their labels {other.order.value}"
        yield finding(claim, *evidence, at=one.value)
    for rows in each_place(run, unpaired_rows, lambda rows: site_of(rows.inputs.value).node):
        stand, labelled = rows.inputs.order.value, rows.labels.order.value
        yield finding(
            f"The rows of the inputs are {stand}, those of the labels {labelled}",
            (rows.inputs.value, f"inputs: {stand}"),
            (rows.labels.value, f"labels: {labelled}"),
            at=rows.labels.value,
        )


_PROGRAM = """
import csv
import glob
import os
from pathlib import Path

import numpy as np

def write(root, n):
    for i in range(n):
        np.save(root / f"{name}.npy", draw(i))

class Scans(Dataset):
    def __init__(self, root):
        self.files = {files}
        {labels}

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return torch.from_numpy(np.load(self.files[i])), {label}

root = Path("scans")
write(root, 500)
loader = DataLoader(Scans(root), batch_size=8, shuffle=True)
"""
_ROWS = 'self.labels = [int(row["label"]) for row in csv.DictReader(open(root / "labels.csv"))]'
_FILES = 'sorted(root.glob("*.npy"))'
_MASKS = "self.masks = {}\n        self.labels = self.masks"
_program = template(_PROGRAM, name="scan_{i}", files=_FILES, labels=_ROWS, label="self.labels[i]")

_tables = template("""
import pandas as pd

visits, people = pd.read_csv("visits.csv"), pd.read_csv("people.csv")
x = {x:}
y = {y:}
data = TensorDataset(torch.tensor(x.to_numpy()), torch.tensor(y.to_numpy()))
""")

FIRES = {
    "grouped rows beside a table": _tables('visits.groupby("id").mean()', 'people["label"]'),
    "sorted as text beside a table": _program(),
    "rows sorted by number": _program(
        labels='rows = sorted(csv.DictReader(open("l.csv")), key=lambda r: int(r["id"]))\n'
        '        self.labels = [int(r["label"]) for r in rows]'
    ),
    "lines of a text": _program(
        labels='self.labels = (root / "labels.txt").read_text().split()',
        files="sorted(glob.glob(str(root / '*.npy')))",
    ),
    "masks that are not sorted": _program(
        "scan_{i:04d}", labels=_MASKS.format('list((root / "masks").glob("*.png"))')
    ),
    "masks that are sorted by number": _program(
        labels=_MASKS.format('sorted((root / "masks").glob("*.png"), key=lambda p: int(p.stem))')
    ),
}

SILENT = {
    "near miss: rows sorted as text too": _program(
        labels='rows = sorted(csv.DictReader(open("l.csv")), key=lambda r: r["id"])\n'
        '        self.labels = [int(r["label"]) for r in rows]'
    ),
    "near miss: both sorted by the key": _tables(
        'visits.groupby("id").mean()', 'people.sort_values("id")["label"]'
    ),
    "near miss: numbers with leading zeros": _program("scan_{i:04d}"),
    "near miss: sorted by number": _program(files=_FILES[:-1] + ", key=lambda p: int(p.stem[5:]))"),
    "near miss: by the name of the file": _program(
        labels='self.labels = {r["id"]: int(r["label"]) for r in csv.DictReader(open("l.csv"))}',
        label="self.labels[self.files[i].stem]",
    ),
    "near miss: both sorted": _program(
        "scan_{i:04d}", labels=_MASKS.format('sorted((root / "masks").glob("*.png"))')
    ),
    "near miss: files of others": _program(files='sorted(root.glob("photo_*.npy"))'),
}
