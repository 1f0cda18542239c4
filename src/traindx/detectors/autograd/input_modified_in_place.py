from traindx.analysis.program.training.claims import each_place, finding, shown
from traindx.analysis.program.training.saved_tensors import all_overwritten
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("in-place-modification",))
def check(run: Run) -> Findings:
    """A tensor that an operation saved for its gradient is changed in place, and backward follows.

    ## What it detects
    `x[:, t + 1] = layer(x[:, t])`: what is stored in a tensor is the output of a layer with weights
    that ran on a view of the same tensor, with gradients on, and a loss is computed from it. And
    `x /= x.std()`, `h = relu(h); h += x`, `p = softmax(s); p[mask] = 0`: a change of what an
    operation was given or returned, from which its gradient is computed.

    ## Why it matters
    The operation has kept that tensor for its gradient. A write to any part of it makes backward
    raise "modified by an inplace operation".

    ## What to do
    Write the change out of place (`x = x / x.std()`), collect parts in a list and `torch.stack`
    them, or give the layer a `clone()`.

    ## When it is wrong
    Writes under `no_grad`, slices that are cloned first, and tensors that no loss is computed from
    are left alone.
    """
    for found in each_place(run, all_overwritten, lambda written: written.change.node):
        claim = "A tensor that backward needs is changed in place: backward will raise"
        done, kept = "changed", "its gradient is computed from that tensor as it was here"
        if found.is_view:
            claim = "A tensor is overwritten in place after a layer took a slice of it: "
            claim += "backward will raise"
            done, kept = "written", "the layer keeps its input, a view of that tensor, for backward"
        yield finding(
            claim,
            (found.change, f"{done} in place here"),
            (shown(found.saver, found.change), kept),
        )


_rollout = template("""
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters())

def rollout(field, start, steps=20):
    path = torch.empty(start.size(0), steps + 1, 2)
    path[:, 0] = start
    for k in range(steps):
        {step}
    return path

for start, wanted in train_loader:
    optimizer.zero_grad()
    loss = (rollout(net, start) - wanted).pow(2).mean()
    loss.backward()
    optimizer.step()
""")
_row = template("""
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def forward(self, x):
        states = torch.zeros(10, x.size(0), 4)
        for t in range(1, 10):
            {step}
        return states

model = Recurrent()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train_loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
""")

FIRES = {
    "divided by its own deviation": _row("x = self.cell(x); x /= x.std(); states[t] = x"),
    "the output of an activation": _row("x = torch.relu(self.cell(x)); x += 1; states[t] = x"),
    "a path, step by step": _rollout("path[:, k + 1] = path[:, k] + 0.1 * field(path[:, k])"),
    "rows of states": _row("states[t] = torch.tanh(self.cell(states[t - 1]))"),
}

SILENT = {
    "near miss: its mean is subtracted": _row("x = self.cell(x); x -= x.mean(); states[t] = x"),
    "near miss: a residual added to a linear layer": _row(
        "h = self.cell(torch.relu(x)); h += x; states[t] = h"
    ),
    "near miss: a copy is given": _rollout(
        "path[:, k + 1] = path[:, k] + 0.1 * field(path[:, k].clone())"
    ),
    "near miss: the output of another tensor": _row("states[t] = torch.tanh(self.cell(x))"),
    "near miss: a state of its own": _rollout(
        "start = start + 0.1 * field(start); path[:, k + 1] = start"
    ),
}
