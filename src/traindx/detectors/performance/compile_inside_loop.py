"""A model is compiled anew in every iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loops import training_loops


@detector(needs=("source",), suggests=("recompilation",))
def check(run: Run) -> Iterator[Finding]:
    """`torch.compile` is called inside a training loop.

    ## What it detects
    A call of `torch.compile` within the text of a loop that trains, without a condition.

    ## Why it matters
    Each call wraps the model anew, so its guards and caches start empty or pile up: time goes into
    the compiler instead of training.

    ## What to do
    Compile once, before the loop.

    ## When it is wrong
    A loop over models or settings that makes and trains one each time compiles rightly; a loop that
    also makes its optimizer is left alone.
    """
    for loop in training_loops(project_of(run)):
        module = loop.module
        calls = list(module.calls(loop.node))
        if any(n.startswith("torch.optim.") for _, n in calls):
            continue
        for call, name in calls:
            above = list(module.enclosing(call))
            between = above[: above.index(loop.node)] if loop.node in above else above
            is_guarded = any(isinstance(n, (ast.If, ast.FunctionDef)) for n in between)
            if name == "torch.compile" and not is_guarded:
                yield Finding(
                    claim="The model is compiled inside the training loop",
                    strength=Strength.STRONG,
                    evidence=(
                        module.cite(call, "compiled here, in every iteration"),
                        module.cite(loop.node, "the loop"),
                    ),
                    shows="recompilation",
                    is_symptom=True,
                    location=module.location(call),
                )
                break


_PROGRAM = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for epoch in range(3):
    {inside}
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


def _program(before: str = "", inside: str = "pass") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(before=before, inside=inside)})


_COMPILE = "model = torch.compile(model)"

FIRES = {"every epoch": _program(inside=_COMPILE)}

SILENT = {
    "once": _program(_COMPILE),
    "near miss: in the first epoch": _program(inside=f"if epoch == 0:\n        {_COMPILE}"),
}
