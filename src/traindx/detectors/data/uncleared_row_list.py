from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.repeated_rows import RepeatedRows, repeated_rows
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("duplicate-examples",))
def check(run: Run) -> Findings:
    """A list of rows is added to the training data in every turn, and never emptied.

    ## What it detects
    In a loop over files or shards, a list that collects the rows of each and is put into the list
    of all rows in every turn, while it was made before the loop and nothing empties it.

    ## Why it matters
    The rows of the first file are in the training data as often as there are files, those of the
    last one once: the data are weighted by the order of files, and the epochs are longer.

    ## What to do
    Make the list anew inside of the loop, or add the rows once, after it.

    ## When it is wrong
    Lists that a turn clears or makes anew are left alone, and so is what no training loader reads.
    """
    yield from map(_found, each_place(run, repeated_rows, lambda f: f.added.node))


def _found(found: RepeatedRows) -> Finding:
    return finding(
        f"`{found.name}` keeps the rows of earlier turns, and all of it is added again each time",
        (found.grows, f"{found.name} grows here, and nothing empties it"),
        (found.added, "and all of its rows are added in every turn"),
        at=found.added,
        patch=found.patch(),
        is_symptom=False,
    )


_program = template("""
import json
from pathlib import Path

def load(folder):
    table, rows = [], []
    for path in sorted(Path(folder).glob("*.jsonl")):
        {fresh:pass}
        for line in path.read_text().splitlines():
            rows.append(json.loads(line))
        {added:table.extend(rows)}
    return table

train_loader = DataLoader(load("train"), batch_size=8, shuffle=True)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
""")

FIRES = {
    "extended by a list that is never emptied": _program(),
    "added to itself": _program(added="table += rows"),
}

SILENT = {
    "near miss: a new list for each file": _program("rows = []"),
    "near miss: emptied for each file": _program("rows.clear()"),
    "near miss: emptied after it is added": _program(added="table.extend(rows); rows.clear()"),
}
