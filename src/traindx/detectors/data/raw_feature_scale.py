from traindx.analysis.program.training.claims import cited, each_place, finding
from traindx.analysis.program.training.raw_scales import raw_inputs
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("unnormalised-inputs",))
def check(run: Run) -> Findings:
    """The first layer is given features in raw units, or scaled by one number for all columns.

    ## What it detects
    Inputs of a first layer in training whose making is in sight: columns whose numbers are in the
    hundreds or beyond, or of which one spreads a thousand times as far as another, as after a
    normalisation by the mean and deviation of the whole table.

    ## Why it matters
    Initial weights are made for inputs of about one. The widest column drowns the others, which
    are as good as constant, and no learning rate fits all of them.

    ## What to do
    Subtract the mean and divide by the deviation of each column of the training data: `x.mean(0)`
    and `x.std(0)`, not `x.mean()`.

    ## When it is wrong
    Data out of sight, inputs that are normalised on the way, and first layers with a batch or layer
    norm behind them are left alone.
    """
    for found in each_place(run, raw_inputs, lambda f: f.layer.node):
        wide, narrow = found.widest, found.narrowest
        claim = f"The inputs are not normalized: a column is about {wide.mean:.3g} ± {wide.std:.3g}"
        if narrow is not None:
            claim += f", and another varies by {narrow.std:.2g} only"
        yield finding(
            claim,
            *cited(found.data, "the columns are put together here"),
            (found.layer, "and this layer is given them as they are"),
            at=found.layer,
            strength=Strength.MODERATE,
            is_symptom=False,
        )


_program = template("""
import numpy as np
rng = np.random.default_rng(0)
n = 500
income, share = rng.normal(52000, 9000, n), rng.uniform(0, 1, n)
x = np.column_stack([income, share]).astype("float32")
y = torch.from_numpy((share > 0.5).astype("int64"))
x = {scaled:x}
model = nn.Sequential(nn.Linear(2, 8), {norm:}nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(9):
    for rows in torch.randperm(n).split(32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.from_numpy(x)[rows]), y[rows]).backward()
        optimizer.step()
""")

FIRES = {
    "raw units": _program(),
    "one mean for all columns": _program("(x - x.mean()) / x.std()"),
    "rows of a dataset": script("""
import random

class Houses(Dataset):
    def __len__(self):
        return 900
    def __getitem__(self, i):
        area = random.uniform(300, 4000)
        return torch.tensor([area, random.random()]), float(area > 2000)

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(Houses(), batch_size=16):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y.float()).backward()
    optimizer.step()
"""),
}

SILENT = {
    "near miss: normalised by column": _program("(x - x.mean(0)) / x.std(0)"),
    "near miss: read from a file": _program('np.load("x.npy")'),
    "near miss: a norm behind the first layer": _program(norm="nn.BatchNorm1d(8), "),
}
