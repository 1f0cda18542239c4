"""Every parameter of the model that is trained is frozen, or its random weights are."""

from collections.abc import Iterator

from traindx.analysis.program.execution.values import Answer, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.freezing import Switch, frozen_by, frozen_untrained
from traindx.analysis.program.training.ownership import (
    holders,
    holding_of,
    optimizers_of,
    parameters_given,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("frozen-parameters",))
def check(run: Run) -> Findings:
    """A model is frozen as a whole and trained afterwards, or frozen at its random weights.

    ## What it detects
    Every parameter that an optimizer holds (or that a framework trains) is switched off by
    `requires_grad`, without a condition, and nothing between that and the training adds a layer,
    replaces the model, or switches a parameter on again. And some tensors of a model, by their
    place in the list, that was just made: nothing was loaded into it, nothing was trained before.

    ## Why it matters
    No frozen parameter gets a gradient: backward raises that nothing requires one, or the model
    learns around layers of random numbers.

    ## What to do
    Freeze only the backbone, after its weights are loaded, or give the model its new head after
    freezing.

    ## When it is wrong
    A function out of sight that gets the model may add trainable parts to it, or load weights; such
    programs are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        holding = holding_of(story, *optimizers_of(story))
        found = [
            (s, None)
            for s in frozen_untrained(story)
            if s.model is not None and (holding.is_open or holding.has(s.model))
        ]
        for switch, step in (*_all_frozen(story), *found):
            if switch.event.node not in seen:
                seen.add(switch.event.node)
                yield _finding(switch, step)


def _all_frozen(story: Story) -> Iterator[tuple[Switch, Deed | None]]:
    """What freezes all that an optimizer holds, and the step that has nothing to update."""
    for step in story.does(Do.STEP):
        models = _trained(story, step)
        frozen = [frozen_by(story, m, step.event) for m in models]
        switches = [s for s in frozen if s is not None]
        if switches and len(switches) == len(models):
            yield switches[0], step


def _trained(story: Story, step: Deed) -> list[Value]:
    """The models whose parameters a step updates."""
    given = None if step.subject is None else parameters_given(step.subject)
    if given is not None or not step.event.by_framework:
        return [model for model, _ in holders(given)]
    before = (d for d in story.does(Do.FORWARD) if d.event.order < step.event.order)
    recorded = [d for d in before if d.event.gradients is not Answer.NO and not d.event.within]
    return [d.subject for d in recorded if d.subject is not None][-1:]


def _finding(switch: Switch, step: Deed | None) -> Finding:
    names = (switch.model.names if switch.model is not None else set()) - {"self"}
    name = min(sorted(names), key=len, default="the model")
    claim = f"Parameters of `{name}` are frozen at their random initial values"
    second = cite(switch.event, "nothing was loaded or trained before this")
    if step is not None:
        claim = f"All parameters of `{name}` are frozen, and it is trained afterwards"
        second = cite(step, "and nothing is left to update here")
    return finding(
        claim,
        "frozen-parameters",
        switch.event,
        cite(switch.event, "parameters are frozen here"),
        second,
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn
from torchvision import models

model = models.resnet18(weights="DEFAULT")
{freeze}
{after}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
"""
_ALL = "for p in model.parameters():\n    p.requires_grad = False"


def _program(freeze: str = _ALL, after: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(freeze=freeze, after=after)})


_HEAD = """
model.fc = nn.Linear(512, 10)
for p in model.fc.parameters():
    p.requires_grad = {value}
"""


def _head(value: str) -> Run:
    text = _PROGRAM.format(freeze=_ALL, after=_HEAD.format(value=value))
    return make_run(sources={"train.py": text.replace("SGD(model.par", "SGD(model.fc.par")})


_FRESH = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

def freeze(model, count):
    for p in list(model.parameters())[:count]:
        p.requires_grad_(False)

net = Net()
{before}
freeze(net, 2)
optimizer = torch.optim.Adam(net.parameters())
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
"""

FIRES = {
    "the first tensors of a model that nothing was loaded into": make_run(
        sources={"train.py": _FRESH.format(before="")}
    ),
    "all of it": _program(),
    "by the method": _program("model.requires_grad_(False)"),
    "the head that alone is trained": _head("False"),
}

SILENT = {
    "near miss: weights are loaded first": make_run(
        sources={"train.py": _FRESH.format(before='net.load_state_dict(torch.load("a.pt"))')}
    ),
    "near miss: weights are loaded out of sight": make_run(
        sources={"train.py": _FRESH.format(before="restore(net, path)")}
    ),
    "near miss: the head that alone is trained is switched on": _head("True"),
    "nothing frozen": _program(""),
    "near miss: a new head": _program(after="model.fc = nn.Linear(512, 2)"),
    "near miss: adapters are added": _program(after="add_adapters(model)"),
    "near miss: the head is switched on": _program(
        after="for p in model.fc.parameters():\n    p.requires_grad = True"
    ),
}
