"""Validation runs with dropout on and batch statistics."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Evidence, Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.models import changes_with_mode, layers_of
from traindx.source.patches import diff, inserting_after, inserting_before
from traindx.source.phases import Evaluation, evaluations, is_same_model, mode_before


@detector(needs=("source",), suggests=("validation-in-train-mode",))
def check(run: Run) -> Iterator[Finding]:
    """A validation loop runs a model with dropout or batch norm that is in training mode.

    ## What it detects
    A loop over validation or test data that runs a model made in sight, with dropout or batch norm
    in it, before which nothing calls `eval()` on that model, or `train()` was called last.

    ## Why it matters
    Dropout makes the metric noisy and too low. Batch norm normalises by the validation batch and,
    worse, moves its running statistics with validation data.

    ## What to do
    Call `model.eval()` before the loop and `model.train()` before training goes on.

    ## When it is wrong
    Dropout that stays on to sample predictions is meant so; a loop that sets `train()` itself is
    left alone.
    """
    project = project_of(run)
    for evaluation in evaluations(project):
        forward = evaluation.forward
        made = forward.value.call
        if made is None or not forward.value.is_certain or _decides_itself(evaluation):
            continue
        layers = changes_with_mode(layers_of(project, forward.module, made))
        mode = mode_before(evaluation.entry, forward)
        if not layers or (mode is not None and mode.do is Do.EVAL_MODE):
            continue
        yield Finding(
            claim=f"The {evaluation.phase} loop runs {forward.target} in training mode: "
            f"{', '.join(layers)} behave as in training",
            strength=Strength.STRONG,
            evidence=_evidence(evaluation, mode),
            shows="validation-in-train-mode",
            is_symptom=True,
            location=evaluation.module.location(evaluation.forward.statement or evaluation.loop),
            patch=_patch(evaluation),
        )


def _evidence(evaluation: Evaluation, mode: Act | None) -> tuple[Evidence, ...]:
    forward = evaluation.forward
    here = forward.module.cite(forward.node, f"{forward.target} runs here without eval()")
    if mode is None:
        return (here,)
    return here, mode.module.cite(mode.node, "its mode was last set here, to training")


def _decides_itself(evaluation: Evaluation) -> bool:
    """Tell whether the function of the loop sets a mode in some other way."""
    scope: ast.AST = evaluation.module.function_of(evaluation.loop) or evaluation.loop
    is_top = scope is evaluation.entry.scope
    for node in ast.walk(evaluation.loop if is_top else scope):
        if isinstance(node, ast.Attribute) and node.attr in ("train", "eval"):
            return True
    return False


def _patch(evaluation: Evaluation) -> str | None:
    module, loop, name = evaluation.module, evaluation.loop, evaluation.forward.target
    edits = [inserting_before(module, loop, f"{name}.eval()")]
    acts = evaluation.entry.acts
    returns = (a for a in acts if a.do is Do.TRAIN_MODE and a.loops)
    if not any(is_same_model(a, evaluation.forward) for a in returns):
        edits.append(inserting_after(module, loop, f"{name}.train()"))
    return diff(module, *edits)


_PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.drop = nn.{layer}

    def forward(self, x):
        return self.drop(self.fc(x))

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {validation}
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
"""


def _program(validation: str = "pass", layer: str = "Dropout(0.5)") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(validation=validation, layer=layer)})


FIRES = {
    "dropout stays on": _program(),
    "batch norm stays on": _program(layer="BatchNorm1d(2)"),
}

SILENT = {
    "eval before the loop": _program("model.eval()"),
    "near miss: train(False)": _program("model.train(False)"),
    "near miss: a layer that has no modes": _program(layer="LayerNorm(2)"),
}
