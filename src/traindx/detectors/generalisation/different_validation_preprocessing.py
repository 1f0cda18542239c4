"""Validation changes the model's input in a way that training does not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding, function_name, source_text
from traindx.analysis.program.training.data import Role, feeds, loop_runs, named_role, use_of
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.preprocessing import Preprocessing, preprocessing_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

ON_PURPOSE = ("robust", "noise", "noisy", "corrupt", "attack", "advers", "tta", "perturb", "stress")


@dataclass(frozen=True, eq=False)
class _Pass:
    """A call of a model on a batch, and what was done to its input."""

    event: ProgramEvent
    model: Value | None
    role: Role
    given: Value
    input: Preprocessing


@detector(needs=("source",), suggests=("preprocessing-mismatch", "augmentation-in-validation"))
def check(run: Run) -> Findings:
    """A model's input is scaled, shifted or made noisy in validation and not so in training.

    ## What it detects
    Two calls of one model, one where it learns and one on held-out batches, whose inputs, followed
    back through the loop, the collate function and the dataset to the data, go through different
    arithmetic (fixed numbers, logarithms, statistics), or through noise in validation only.

    ## Why it matters
    The model is shown inputs that it never learnt from. The metric is low, and no regularisation
    will help.

    ## What to do
    Put the preprocessing in one function and call it in both places; keep noise for training.

    ## When it is wrong
    Tests of robustness disturb inputs on purpose; functions that are named so are left alone. So
    are inputs that pass through functions out of sight, and a second view of a batch that the model
    is also given as in training.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        passes = list(_passes(story))
        for held in passes:
            if held.role is not Role.HELD_OUT or held.event.node in seen:
                continue
            trained = [p for p in passes if p.role is Role.TRAIN and p.model is held.model]
            found = _compare(story, held, trained, passes) if trained else None
            if found is not None:
                seen.add(held.event.node)
                yield found


def _passes(story: Story) -> Iterator[_Pass]:
    """The calls of models in loops, with the role of the loop around."""
    uses = {id(r): (r.over, use_of(story, r)) for r in loop_runs(story)}
    for deed in story.does(Do.FORWARD):
        event = deed.event
        if event.within or event.guards or not event.args or not event.loops:
            continue
        input_ = preprocessing_of(story, event.args[0], into_dataset=False)
        found = [_role(story, *uses[id(r)], input_) for r in reversed(event.loops)]
        role = next((r for r in found if r is not Role.UNKNOWN), None)
        if role is not None:
            yield _Pass(event, deed.subject, role, event.args[0], input_)


def _role(story: Story, over: Value | None, use: Role, given: Preprocessing) -> Role:
    """What a loop is for; one that only evaluates needs a hint that its data are held out."""
    if use is not Role.HELD_OUT or over is None:
        return use
    source = source_of(over)
    data = given.source.inputs[:1]
    known = next((f.role for f in feeds(story) if f.loader is source), named_role(source, *data))
    return known if known is Role.HELD_OUT else Role.UNKNOWN


def _compare(
    story: Story, held: _Pass, trained: list[_Pass], passes: list[_Pass]
) -> Finding | None:
    """Compare inputs from the data on where these are in sight, else from the batch on."""
    name = function_name(held.event).lower()
    known = all(p.input.is_known for p in (*trained, held))
    if any(word in name for word in ON_PURPOSE) or not known:
        return None
    beside = [p for p in passes if p.event.node is not held.event.node and p.role is held.role
              and p.model is held.model and p.input.source is held.input.source]  # fmt: skip
    if any(not p.input.is_known or _is_as(p.input, trained) for p in beside):
        return None
    deep = [replace(p, input=preprocessing_of(story, p.given)) for p in (held, *trained)]
    if all(p.input.is_known for p in deep):
        held, *trained = deep
    return _difference(held, trained)


def _difference(held: _Pass, trained: list[_Pass]) -> Finding | None:
    noise = held.input.noise
    if noise and all(len(p.input.noise) < len(noise) for p in trained):
        says = f"`{source_text(noise[-1])}` on the input in validation, not in training"
        return _finding(held, trained[0], "Validation adds noise", says, _NOISE)
    if all(p.input.scaling != held.input.scaling and _is_like(p, held) for p in trained):
        says = f"validation: {_words(held.input)}; training: {_words(trained[0].input)}"
        claim = "Validation scales or shifts the input in another way than training"
        return _finding(held, trained[0], claim, says, "preprocessing-mismatch")
    return None


_NOISE = "augmentation-in-validation"


def _is_like(trained: _Pass, held: _Pass) -> bool:
    """Tell whether two inputs take the same way but for their scale."""
    return set(held.input.others) <= set(trained.input.others)


def _is_as(changes: Preprocessing, trained: list[_Pass]) -> bool:
    """Tell whether an input is as in training: what stands beside it is a second view of it."""
    alike = (p.input for p in trained if p.input.scaling == changes.scaling)
    return any(len(p.noise) >= len(changes.noise) for p in alike)


def _words(changes: Preprocessing) -> str:
    return f"the input {' '.join(changes.scaling)}" if changes.scaling else "the input as it comes"


def _finding(held: _Pass, trained: _Pass, claim: str, says: str, cause: str) -> Finding:
    return finding(
        f"{claim}: {says}",
        cause,
        held.event,
        cite(held.event, says),
        cite(trained.event, "the same model in training"),
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for data, target in train_loader:
        {before}
        optimizer.zero_grad()
        nn.functional.cross_entropy(model({train}), target).backward()
        optimizer.step()
    with torch.no_grad():
        for data, target in val_loader:
            data, target = data.to(device), target.to(device)
            correct = model({val}).argmax(1) == target
"""
_STEPS = """
import torch, lightning

class Net(lightning.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self(x{train}), y)

    def validation_step(self, batch, index):
        x, y = batch
        x = x{val}
        self.log("val", nn.functional.cross_entropy(self(x), y))
"""


def _program(val: str, train: str = "data", before: str = "pass") -> Run:
    text = _PROGRAM.format(train=train, val=val, before=before)
    return make_run(sources={"train.py": text})


def _lightning(val: str, train: str = "") -> Run:
    return make_run(sources={"train.py": _STEPS.format(train=train, val=val)})


_CALLED = """
import torch
from torch import nn

@torch.no_grad()
def match(net, loader):
    for x, y in loader:
        hits = net({val}).argmax(1) == y

def main():
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    match(model, {given})
"""


def _called(given: str) -> Run:
    text = _CALLED.replace("{val}", "x + 4 * torch.randn_like(x)").replace("{given}", given)
    return make_run(sources={"train.py": text})


FIRES = {
    "noise in a function that is handed held-out data": _called("val_loader"),
    "noise on one of two inputs": _program("data + torch.randn_like(data)) + model(other"),
    "shifted": _program("data - 0.5"),
    "scaled in training only": _program("data", before="data = data / 255.0"),
    "noise": _program("data + 0.1 * torch.randn_like(data)"),
    "steps of Lightning": _lightning(" * 2"),
}

SILENT = {
    "near miss: a function that is handed anything": _called("batches"),
    "the same": _program("data"),
    "near miss: the same, written otherwise": _program(
        "data.float().div(255)", before="data = data / 255.0"
    ),
    "near miss: noise in training only": _program("data", "data + torch.randn_like(data)"),
    "near miss: a second view of the same batch": _program("data) + model(data * -1.0"),
    "near miss: how much noise does to the output": _lightning(
        "\n        shaken = x + torch.randn_like(x)\n        z = self(shaken)"
    ),
    "near miss: noise in both": _lightning(" + torch.randn_like(x)", " + torch.rand_like(x)"),
    "near miss: a mixture of two": _program("data", "lam * data + (1 - lam) * data[index]"),
    "near miss: for one batch only": _program("data", before="if epoch == 2: data = data * 1000.0"),
    "near miss: a function of its own": _program("data / 255", "prepare(data)"),
}
