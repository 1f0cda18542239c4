from traindx.analysis.program.training.claims import each_place, finding, shown
from traindx.analysis.program.training.flat_operations import flat_losses, name_of_flat
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("non-differentiable-operation",))
def check(run: Run) -> Findings:
    """The training loss goes through an operation without a gradient.

    ## What it detects
    `backward` of a loss, or a sum with a term, whose every path back to the model goes through an
    argmax, a rounding, a comparison, an integer division or a cast to integers, also where a single
    parameter behind it still learns.

    ## Why it matters
    Such an operation is flat: its gradient is zero or does not exist. Backward raises, or the loss
    does not depend on the weights and nothing is learnt.

    ## What to do
    Compute the loss on the scores (logits, probabilities); use argmax and thresholds for metrics.

    ## When it is wrong
    A straight-through estimator adds the rounded value to a differentiable one and is left alone,
    as are losses that no backward is called on. A loss that is given its target first, as
    `mse_loss(target, output)`, has its gradient through the other argument.
    """
    for backward, flat in each_place(run, flat_losses, at=lambda found: found[0].event.node):
        how, place = name_of_flat(flat), shown(flat, backward)
        yield finding(
            f"The loss is computed on the result of {how}, which has no gradient",
            (place, f"{how} here"),
            (backward, "backward runs through it here"),
        )


_loop = template("""
criterion = nn.MSELoss()
net = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    output = model(data)
    {compute:pass}
    loss = criterion({given}, {wanted:target})
    loss.backward()
    optimizer.step()
""")

_counts = template("""
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1)
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        rate = nn.functional.softplus(self.net(x)).squeeze(-1)
        return {output:self.gain * (rate + (torch.round(rate) - rate).detach())}

model = Counts()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
""")

FIRES = {
    "only a gain learns": _counts("self.gain * torch.round(rate)"),
    "argmax": _loop("pred.float()", "pred = torch.argmax(output, dim=1)"),
    "a threshold": _loop("pred", "pred = (output > 0.5).float()"),
    "round, of a call": _loop("given", "given = torch.round(net(data))"),
    "round": _loop("torch.round(output)"),
    "round, the target in its shape": _loop("output.round()", wanted="target.view_as(output)"),
}

SILENT = {
    "near miss: straight through, with a gain": _counts(),
    "scores": _loop("output"),
    "near miss: straight through": _loop(
        "pred", "pred = output + (output.round() - output).detach()"
    ),
    "near miss: the target first": _loop("(data > 0.5).float()", wanted="output"),
    "near miss: a target of the batch first": _loop(
        "bits", "data = data.flatten(1); bits = (data > 0.5).float()", "decode(output)"
    ),
    "near miss: only in another branch": _loop(
        "output", "if hard:\n        output = output.round()"
    ),
    "near miss: argmax for a metric": _loop("output", "correct = output.argmax(1) == target"),
}
