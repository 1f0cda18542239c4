from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.shared_buffers import shared_buffers
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("degenerate-batch",))
def check(run: Run) -> Findings:
    """All rows of a batch are views of one buffer, and equal the last one.

    ## What it detects
    A list of rows that is stacked into a batch, where every row is the same array or a view of it,
    and a loop writes each row into that array; and a dataset that fills an array of its own and
    hands it out as the example.

    ## Why it matters
    `torch.from_numpy`, slices and `view` share memory. By the time the rows are stacked, the buffer
    holds the last one: the batch is one example many times, with the labels of others.

    ## What to do
    Copy each row: `torch.from_numpy(buffer.copy())` or `.clone()`; or make the buffer inside of
    the loop.

    ## When it is wrong
    Rows that are copied, and buffers that each row has a place of its own in, are left alone.
    """
    for found in each_place(run, shared_buffers, lambda f: f.fill.node):
        yield finding(
            "All rows of a batch share the memory of one buffer, which holds the last of them",
            (found.fill, "each row is written into the same buffer"),
            (found.stacked, "and the batch is made of views of it"),
            patch=found.patch(),
            is_symptom=False,
        )


_program = template("""
import numpy as np

buffer = np.zeros((60, 4), dtype=np.float32)
def collate(rows):
    padded = []
    for piece, label in rows:
        {fill:buffer[:len(piece)] = piece}
        padded.append({row:torch.from_numpy(buffer)})
    return torch.stack(padded), torch.tensor([label for _, label in rows])
loader = DataLoader(pieces, batch_size=8, collate_fn=collate)
for x, y in loader:
    print(model(x))
""")
_dataset = template("""
import numpy as np

class Signals(Dataset):
    def __init__(self, files):
        self.files, self.scratch = files, np.zeros((8, 100), dtype=np.float32)
    def __len__(self):
        return len(self.files)
    def __getitem__(self, i):
        {fill:self.scratch[:] = np.load(self.files[i])}
        return torch.from_numpy(self.scratch), 1
for x, y in DataLoader(Signals(names), batch_size=8, shuffle=True):
    print(model(x))
""")

FIRES = {
    "padded in a scratch array": _program(),
    "copied into a buffer": _program("np.copyto(buffer, piece)", "torch.as_tensor(buffer)"),
    "a dataset that hands out its scratch array": _dataset(),
}

SILENT = {
    "near miss: a copy of each row": _program(row="torch.from_numpy(buffer.copy())"),
    "near miss: a new buffer for each row": _program(
        "buffer = np.zeros((60, 4)); buffer[:len(piece)] = piece"
    ),
    "near miss: a dataset with a new array": _dataset("self.scratch = np.load(self.files[i])"),
}
