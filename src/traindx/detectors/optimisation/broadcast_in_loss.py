from traindx.analysis.program.training.claims import (
    argument_site,
    cited,
    each_place,
    finding,
    node_of,
    replace,
    source_text,
)
from traindx.analysis.program.training.pairing import broadcast_losses, paired_losses
from traindx.analysis.program.training.shapes import shape_of
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector

CAUSE = "target-shape-broadcast"


@detector(needs=("source",), suggests=("target-shape-broadcast",))
def check(run: Run) -> Findings:
    """Predictions of shape (N, 1) are compared with targets of shape (N).

    ## What it detects
    A squared, absolute or Huber loss of which one side is a column, such as the output of a linear
    layer with one unit, and the other has one dimension for certain: made from a column of a table,
    by a factory with a single size, by an index or a reduction. The same for a loss written by
    hand, `((output - target) ** 2).mean()`, where both shapes are in sight.

    ## Why it matters
    Broadcasting compares every prediction with every target, N × N pairs. The loss is a number,
    gradients flow, and the model learns the mean of the targets.

    ## What to do
    Give both the same shape: `output.squeeze(1)`, or `target.unsqueeze(1)`.

    ## When it is wrong
    Where either shape is out of sight nothing is said, nor where a loss by hand sets a column
    against a row of another length, such as thresholds or quantiles.
    """
    seen: set[object] = set()
    for found in each_place(run, broadcast_losses, lambda broadcast: broadcast.loss.event.node):
        seen.add(found.loss.event.node)
        loss = found.loss
        site = argument_site(loss.event, found.column)
        yield finding(
            f"{loss.label} broadcasts a shape of (N, 1) against a shape of (N)",
            (loss.event, "the two meet here and broadcast to (N, N)"),
            *cited(found.column, "a column: (N, 1)"),
            *cited(found.row, "one dimension: (N)"),
            patch=None if site is None else replace(site, f"{source_text(site)}.squeeze(1)"),
        )
    for difference in each_place(run, paired_losses, node_of):
        if node_of(difference) not in (None, *seen):
            sizes = [["N" if s is None else s for s in shape_of(v) or ()] for v in difference.args]
            shown = " against ".join(str(tuple(shape)).replace("'", "") for shape in sizes)
            yield finding(
                "The loss takes a difference that broadcasts (N, 1) against (N)",
                (difference, f"`{source_text(difference)}` broadcasts {shown} to N x N pairs"),
            )


_PROGRAM = """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, {units}))
x = torch.tensor(frame[features].values)
y = {target}
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
criterion = nn.MSELoss()
for data, target in train_loader:
    output = model(data)
    {change}
    loss = criterion(output, target)
    loss.backward()
"""
_program = template(_PROGRAM, "target", change="pass", units=1)

_COLUMN = 'torch.tensor(frame["price"].values).float()'

_hand = template("""
n = 50
x = torch.randn(n, 3)
y = {target}
w = torch.randn(3, 1, requires_grad=True)
optimizer = torch.optim.Adam([w], lr=0.01)
for step in range(100):
    output = x.mm(w)
    loss = {loss:((output - y) ** 2).mean()}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")

_values = template("""
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
older = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam(online.parameters(), lr=1e-3)

def learn(batch):
    state, action, reward, after, done = batch
    value = online(state).gather(1, action.unsqueeze(1))
    with torch.no_grad():
        wanted = reward + 0.9 * (1 - done) * older(after).max({axis:1})[0]
    {loss:loss = (wanted - value).pow(2).mean()}
    opt.zero_grad()
    loss.backward()
    opt.step()

for step in range(1000):
    learn(memory.sample(32))
""")

_ROWS = """
class Rows(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 10)
        self.y = self.x.sum(1)
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return self.x[i], self.y[i]{more}

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for x, y in DataLoader(Rows(500), 32, shuffle=True):
    opt.zero_grad()
    nn.HuberLoss()(net(x), y).backward()
    opt.step()
"""

FIRES = {
    "values of actions against their targets": _values(),
    "values of actions in a loss of torch": _values(
        loss="loss = nn.functional.smooth_l1_loss(value, wanted)"
    ),
    "an example with one number for a target": script(_ROWS, more=""),
    "by hand": _hand("2 * x[:, 0] + torch.randn(n)"),
    "a column of a table": _program(_COLUMN),
    "made flat": _program("torch.randn(100)"),
    "rows of a flat target": _program(_COLUMN, "target = y[:len(output)]"),
}

SILENT = {
    "near miss: values of actions, both columns": _values("1, keepdim=True"),
    "near miss: an example with a column": script(_ROWS, more="[None]"),
    "near miss: all pairs of a ranking": script("""
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
X, y = torch.randn(500, 6), torch.randn(500)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for idx in torch.randperm(500).split(50):
    s, t = net(X[idx]).squeeze(1), y[idx]
    loss = nn.functional.softplus(-(s[:, None] - s) * (t[:, None] - t).sign()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""),
    "near miss: by hand, of one shape": _hand("2 * x[:, 0:1]"),
    "near miss: by hand, grown in place": _hand("x[:, 0].clone()\ny.unsqueeze_(1)"),
    "near miss: by hand, flattened": _hand("x[:, 0]", "((output.view(-1) - y) ** 2).mean()"),
    "near miss: pairs on purpose": _hand("x[:, 0]", "(output.t() - output).abs().mean()"),
    "near miss: thresholds for every row": _hand(
        "torch.tensor([0.0, 1.0])", "torch.sigmoid(output - y).mean()"
    ),
    "near miss: one number for all": _hand("torch.tensor([2.0])"),
    "near miss: the target gets a dimension": _program(_COLUMN, "target = target.unsqueeze(1)"),
    "near miss: indexed to a column": _program(_COLUMN, "target = target[:, None]"),
    "near miss: a column before it is loaded": _program(f"{_COLUMN}[:, None]"),
    "near miss: an entry of a dictionary, of any shape": _program(
        _COLUMN, 'target = data["label"].float()'
    ),
    "near miss: an array by its name in a file": _program('torch.tensor(arrays["price"])'),
    "near miss: the target grows in place": _program("torch.randn(100)", "target.unsqueeze_(1)"),
    "near miss: the output loses one": _program(_COLUMN, "output = output.squeeze(1)"),
    "near miss: the shape of the target is out of sight": _program("load_targets()"),
    "a column on purpose": _program("torch.randn(100, 1)"),
}
