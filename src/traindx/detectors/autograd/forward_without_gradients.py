"""The loss of a training step is computed where no gradients are recorded."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import key_of

OFF = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")


@detector(needs=("source",), suggests=("no-grad-training",))
def check(run: Run) -> Iterator[Finding]:
    """The loss of a training step is computed under `no_grad`.

    ## What it detects
    A training loop that calls `backward` on a loss that is computed inside a `no_grad` or
    `inference_mode` block, or in a function that is decorated with one.

    ## Why it matters
    Nothing is recorded there, so backward has nothing to run through: it raises, or the loop learns
    nothing.

    ## What to do
    Leave the block before the forward pass of training; keep it for validation.

    ## When it is wrong
    A target network or teacher under `no_grad` beside a recorded forward pass is right; only the
    loss that backward is called on is looked at.
    """
    for loop in training_loops(project_of(run)):
        for backward in loop.does(Do.BACKWARD):
            loss = _loss_of(loop, backward)
            if loss is None or not _is_off(loss) or _is_off_outside(loss, backward):
                continue
            yield Finding(
                claim="The training loss is computed where gradients are switched off",
                strength=Strength.STRONG,
                evidence=(
                    cite_source(loss.module.path, loss.line, "computed under no_grad here"),
                    cite_source(backward.module.path, backward.line, "backward is called here"),
                ),
                shows="no-grad-training",
                is_symptom=True,
                location=loss.location,
            )
            break


def _loss_of(loop: TrainingLoop, backward: Act) -> Act | None:
    """The last loss computed before a backward, under the name that backward is called on."""
    name = backward.target
    before = [a for a in loop.acts[: loop.acts.index(backward)] if a.do is Do.LOSS]
    for act in reversed(before):
        statement = act.statement
        targets = getattr(statement, "targets", [])
        if name and any(key_of(t) == name for t in targets):
            return act
    return None


def _is_off(act: Act) -> bool:
    return any(c in OFF or c.endswith((".no_grad", ".inference_mode")) for c in act.contexts)


def _is_off_outside(loss: Act, backward: Act) -> bool:
    """With backward in the same block the block may be re-enabled inside; say nothing."""
    return any("enable_grad" in c or "set_grad_enabled" in c for c in loss.contexts)


_LOOP = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    with {context}:
        output = model(data)
        loss = criterion(output, target)
    loss.backward()
    optimizer.step()
"""


def _loop(context: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(context=context)})


_TEACHER = """
import torch
from torch import nn

criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    with torch.no_grad():
        wanted = teacher(data)
    loss = criterion(model(data), wanted)
    loss.backward()
    optimizer.step()
"""

FIRES = {"training under no_grad": _loop("torch.no_grad()")}

SILENT = {
    "autocast": _loop("torch.autocast('cuda')"),
    "near miss: the teacher only": make_run(sources={"train.py": _TEACHER}),
}
