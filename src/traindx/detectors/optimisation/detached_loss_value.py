"""The value that backward is called on was cut from the graph."""

from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.values import Answer, Part, Result, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.gradients import (
    Cut,
    cuts_before,
    has_history,
    runs_behind,
    runs_reached,
    terms_of,
)
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.ownership import owns
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.severance import lost_history
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector


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
    seen: set[object] = set()
    for story in program_of(run).stories:
        for backward in story.does(Do.BACKWARD):
            if backward.event.node in seen or backward.subject is None:
                continue
            found = list(_faults(story, backward, backward.subject))
            if found:
                seen.add(backward.event.node)
            yield from found


def _faults(story: Story, backward: Deed, loss: Value) -> Findings:
    cuts = lost_history(story, backward)
    if cuts and all(how is Cut.DETACHED for how, _ in cuts):
        yield _cut(backward, cuts[0][1])
        return
    for term in terms_of(loss) if not cuts else []:
        chance = _unrecorded_chance(term)
        if chance is not None and not _is_trained_here(story, loss, chance):
            continue
        if chance is not None:
            yield _unrecorded(backward, chance)
            return
    yield from _forced(story, backward, loss)


def _unrecorded_chance(term: Value) -> Value | None:
    """The log-probability of a term that has no history, since autograd was off."""
    if has_history(term) is not Answer.NO:
        return None
    found = (v for how, v in cuts_before(term) if how is Cut.UNRECORDED)
    return next((v for v in found if _is_of_policy(v)), None)


def _is_trained_here(story: Story, loss: Value, chance: Value) -> bool:
    """Tell whether the layer behind is the optimizer's, and no other term reaches it."""
    layer = runs_behind(chance)[0].receiver
    reached = any(r.receiver is layer for r in runs_reached(loss))
    optimizers = [d.subject for d in story.does(Do.STEP) if d.subject is not None]
    return (
        layer is not None and not reached and any(owns(o, layer) is Answer.YES for o in optimizers)
    )


def _is_of_policy(value: Value) -> bool:
    operation = operation_of(value)
    return operation is not None and operation.name in ("log_prob", "log_softmax", "gather")


def _name(cut: Value) -> str:
    if isinstance(cut, Part):
        return f".{cut.key}"
    maker = cut.maker if isinstance(cut, Result) else ""
    return f"{maker}()" if maker.startswith(".") else f"{maker}(…)"


def _cut(backward: Deed, cut: Value) -> Finding:
    how = _name(cut)
    return finding(
        f"The loss is detached from the graph by {how} before backward",
        "detached-loss",
        cut if cut.site is not None else backward,
        cite(cut if cut.site is not None else backward, f"{how} makes a value without history"),
        cite(backward, "backward is called on it here"),
        is_symptom=True,
    )


def _unrecorded(backward: Deed, chance: Value) -> Finding:
    return finding(
        "The log-probabilities in the loss were computed under no_grad: that term has no gradient",
        "detached-loss",
        chance if chance.site is not None else backward,
        cite(chance if chance.site is not None else backward, "computed under no_grad here"),
        cite(backward, "backward is called on the sum here"),
        is_symptom=True,
    )


def _forced(story: Story, backward: Deed, loss: Value) -> Findings:
    """`loss.requires_grad = True`: a loss that has a history needs no such line."""
    for event in story.events:
        if event.order > backward.event.order or event.receiver is not loss:
            continue
        is_store = event.act is Form.STORE and event.name == "requires_grad"
        given = constant(event.args[0]) if event.args else True
        if given is True and (is_store or event.name == ".requires_grad_"):
            yield Finding(
                claim=f"`requires_grad` is set on `{backward.text or 'loss'}` before backward",
                strength=Strength.MODERATE,
                evidence=(
                    event.cite("needless for a loss of the model; it hides one without a history"),
                ),
                suggests={"detached-loss": Strength.MODERATE},
                location=event.location,
            )
            return


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
{more}
    optimizer.step()
"""


def _loop(*more: str) -> Run:
    body = "\n".join(f"    {line}" for line in more)
    return make_run(sources={"train.py": _LOOP.format(more=body)})


_TOWERS = """
import torch
from torch import nn

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
optimizer = torch.optim.Adam({held})
for a, b in loader:
    scores = model(a, b)
    loss = nn.functional.cross_entropy(scores, torch.arange(len(a)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _towers(cut: str, held: str = "model.parameters()") -> Run:
    return make_run(sources={"train.py": _TOWERS.format(cut=cut, held=held)})


FIRES = {
    "only a scale is left with a gradient": _towers(".detach()"),
    "told to require gradients": _loop("loss.requires_grad = True", "loss.backward()"),
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
