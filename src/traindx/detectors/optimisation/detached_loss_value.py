from traindx.analysis.program.training.claims import cite, each_place, finding, shown
from traindx.analysis.program.training.severance import severed_losses
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector

CAUSE = "detached-loss"
UNRECORDED = (
    "The log-probabilities in the loss were computed under no_grad: that term has no gradient"
)
FORCED = "needless for a loss of the model; it hides one without a history"


@detector(needs=("source",), suggests=("detached-loss",))
def check(run: Run) -> Findings:
    """Backward is called on a value that was cut from the computation.

    ## What it detects
    A loss, or a policy-gradient term of it, whose whole history ends in `.item()`, `.detach()`,
    `.data`, `.numpy()`, a new tensor built from old values, or a `log_prob` that was computed under
    `no_grad`. So too where a parameter beside the layers is all that is left with a gradient. As a
    remark, a loss on which `requires_grad` is set before backward.

    ## Why it matters
    The new value knows nothing of the model. Backward fails, or, with `requires_grad=True` set to
    silence the error, runs and reaches no parameter: nothing is learnt.

    ## What to do
    Call `backward` on the loss itself; use `.item()` only for what is printed.

    ## When it is wrong
    A detached part of a larger sum is fine and is left alone, and so is a value that may come from
    elsewhere, or that one branch detaches and another does not.
    """
    for found in each_place(run, severed_losses, lambda severed: severed.backward.event.node):
        backward = found.backward
        if found.set_by is not None:
            claim = f"`requires_grad` is set on `{backward.text or 'loss'}` before backward"
            remark = Strength.MODERATE
            evidence = cite(found.set_by, FORCED)
            yield finding(
                claim,
                evidence,
                at=found.set_by,
                strength=remark,
                hint=remark,
                is_symptom=False,
            )
            continue
        place = shown(found.cut, backward)
        claim = f"The loss is detached from the graph by {found.how} before backward"
        first, what = f"{found.how} makes a value without history", "it"
        if found.how == "no_grad":
            claim, first, what = UNRECORDED, "computed under no_grad here", "the sum"
        second = cite(backward, f"backward is called on {what} here")
        yield finding(claim, (place, first), second)


_LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
{more}
    optimizer.step()
"""


def _loop(*more: str) -> Run:
    body = "\n".join(f"    {line}" for line in more)
    return script(_LOOP, more=body)


_towers = template("""
class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 4), nn.Linear(6, 4)
        self.scale = nn.Parameter(torch.ones(()))

    def embed(self, tower, x):
        return nn.functional.normalize(tower(x), dim=-1){cut}

    def forward(self, a, b):
        return self.scale.exp() * self.embed(self.left, a) @ self.embed(self.right, b).t()

model = Towers()
optimizer = torch.optim.Adam({held:model.parameters()})
for a, b in loader:
    scores = model(a, b)
    loss = nn.functional.cross_entropy(scores, torch.arange(len(a)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")

FIRES = {
    "only a scale is left with a gradient": _towers(".detach()"),
    "set to require gradients": _loop("loss.requires_grad = True", "loss.backward()"),
    "a new tensor to silence the error": _loop(
        "loss = torch.tensor(loss.item(), requires_grad=True)", "loss.backward()"
    ),
    "detach before backward": _loop("loss.detach().requires_grad_().backward()"),
    "data": _loop("value = loss.data", "value.backward()"),
    "in the branch that learns": _loop(
        "if learns:", "    value = loss.detach()", "if learns:", "    value.backward()"
    ),
}

SILENT = {
    "near miss: a scale beside towers that learn": _towers(""),
    "near miss: only the scale is to be trained": _towers(".detach()", "[model.scale]"),
    "a right loop": _loop("loss.backward()", "print(loss.item())"),
    "near miss: a detached part of the sum": _loop("loss = loss + aux.detach()", "loss.backward()"),
    "near miss: detached in the branch that does not learn": _loop(
        'if phase == "val":',
        "    loss = loss.detach()",
        'if phase == "train":',
        "    loss.backward()",
    ),
    "near miss: the other branch of the same test": _loop(
        "if learns:",
        "    loss = criterion(model(data), target)",
        "else:",
        "    loss = criterion(model(data), target).detach()",
        "if learns:",
        "    loss.backward()",
    ),
    "near miss: a start that is added to": _loop(
        "total = torch.tensor(offset)", "total += loss", "total.backward()"
    ),
    "near miss: the name of a loop": _loop(
        "value = loss.item()", "for value in losses:", "    value.backward()"
    ),
    "near miss: the printed value is detached": _loop("loss.backward()", "running = loss.detach()"),
}
