from traindx.analysis.errors.passed_lines import unless_passed
from traindx.analysis.program.training.claims import cite, finding, line_of, program_of
from traindx.analysis.program.training.facts.dtype_clashes import blamed_dtypes
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("dtype-mismatch",))
def check(run: Run) -> Findings:
    """A layer, product or loss is given numbers of a dtype that it refuses.

    ## What it detects
    The dtype of tensors and arrays is followed from where they are made: numpy makes float64, torch
    float32, a loader stacks Python's floats to float64. A layer of float32 weights that gets
    float64 or whole numbers, an embedding that gets fractions, class indices that are not int64,
    binary targets that are no floating-point numbers, a mean over booleans are found.

    ## Why it matters
    The first batch fails: "mat1 and mat2 must have the same dtype", "expected target dtype to be
    Long", "mean(): could not infer output dtype".

    ## What to do
    Cast where the tensor is made: `.float()`, `.long()`, `dtype=np.float32`.

    ## When it is wrong
    Under autocast torch chooses the dtype of products; these are left alone, as are weights that
    may have been converted out of sight, and a line that is known to have run.
    """
    for blamed in blamed_dtypes(program_of(run)):
        clash, origin = blamed.clash, blamed.origin
        found = finding(
            clash.text,
            (clash.event, f"{clash.text}; `.{clash.cast}` would make it fit"),
            *([cite(origin, f"{blamed.dtype} from here on")] if origin else []),
            at=origin or clash.event,
        )
        yield from unless_passed(run, found, line_of(clash.event))


_TRAIN = """
import numpy as np

rng = np.random.default_rng(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, {out}))
optimizer = torch.optim.Adam(model.parameters())
{data}
for x, y in DataLoader(data, batch_size=16):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""
_PAIRS = """
class Rows(Dataset):
    def __init__(self):
        self.x = rng.normal(size=(64, 8)).astype(np.float32)
        self.y = rng.normal(size=64)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), {target}

data = Rows()
"""


_train = template(_TRAIN, data="", loss="nn.MSELoss()(model(x).squeeze(1), y)", out="1")
_tensors = template(
    _TRAIN.replace("{data}", "data = TensorDataset({x}, {y})"),
    **{"x": "", "y": "", "loss": "nn.MSELoss()(model(x).squeeze(1), y)", "out": "1"},
)
_X = "torch.from_numpy(rng.normal(size=(64, 8)).astype(np.float32))"
_CE = {"loss": "nn.functional.cross_entropy(model(x), y)"}
_BCE = {"loss": "nn.BCEWithLogitsLoss()(model(x).squeeze(1), y)"}

FIRES = {
    "an array of doubles": _tensors("torch.from_numpy(rng.normal(size=(64, 8)))", "torch.ones(64)"),
    "scaled by an array": _tensors(
        "torch.from_numpy(rng.normal(size=(64, 8)).astype('float32') / np.array([2.0] * 8))",
        "torch.ones(64)",
    ),
    "labels that are fractions": _tensors(_X, "torch.zeros(64)", **_CE),
    "labels of 32 bits": _tensors(_X, "torch.randint(0, 2, (64,)).int()", **_CE),
    "binary targets that are whole numbers": _tensors(_X, "torch.randint(0, 2, (64,))", **_BCE),
    "binary targets out of a comparison": _tensors(_X, f"{_X}.sum(1) > 0", **_BCE),
}

SILENT = {
    "cast to float32": _tensors("torch.tensor(rng.normal(size=(64, 8))).float()", "torch.ones(64)"),
    "near miss: made as float32": _tensors(
        "torch.tensor(rng.normal(size=(64, 8)), dtype=torch.float32)", "torch.ones(64)"
    ),
    "near miss: scaled by a number": _tensors(
        "torch.from_numpy(rng.normal(size=(64, 8)).astype('float32') / 2.0)", "torch.ones(64)"
    ),
    "near miss: a share for each class": _tensors(_X, "torch.rand(64, 1)", **_CE),
    "near miss: cast in the loop": _tensors(
        "torch.from_numpy(rng.normal(size=(64, 8)))",
        "torch.ones(64)",
        loss="nn.MSELoss()(model(x.float()).squeeze(1), y)",
    ),
    "near miss: a model of doubles": _train(
        "model.double()\ndata = TensorDataset(torch.from_numpy(rng.normal(size=(64, 8))), "
        "torch.ones(64, dtype=torch.double))"
    ),
    "near miss: doubles as targets of MSE": _train(_PAIRS.format(target="float(self.y[i])")),
}
