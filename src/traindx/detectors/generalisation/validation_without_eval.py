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
from traindx.source.phases import (
    LEARNS,
    Evaluation,
    evaluations,
    is_same_model,
    mode_before,
)


@detector(needs=("source",), suggests=("validation-in-train-mode",))
def check(run: Run) -> Iterator[Finding]:
    """A validation loop runs a model with dropout or batch norm that is in training mode.

    ## What it detects
    A loop over validation or test data, or a block without gradients that speaks of nothing but
    such data, which runs a model made in sight with dropout or batch norm in it, while nothing
    called `eval()` on that model before, or `train()` was called last.

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
        over = "loop" if isinstance(evaluation.block, ast.For) else "pass"
        yield Finding(
            claim=f"The {evaluation.phase} {over} runs {forward.target} in training mode: "
            f"{', '.join(layers)} {'behaves' if len(layers) == 1 else 'behave'} as in training",
            strength=Strength.STRONG,
            evidence=_evidence(evaluation, mode),
            shows="validation-in-train-mode",
            is_symptom=True,
            location=evaluation.module.location(evaluation.forward.statement or evaluation.block),
            patch=_patch(evaluation),
        )


def _evidence(evaluation: Evaluation, mode: Act | None) -> tuple[Evidence, ...]:
    forward = evaluation.forward
    here = forward.module.cite(forward.node, f"{forward.target} runs here without eval()")
    if mode is None:
        return (here,)
    return here, mode.module.cite(mode.node, "its mode was last set here, to training")


def _decides_itself(evaluation: Evaluation) -> bool:
    """Tell whether the block, or a function that only evaluates, sets a mode in some other way."""
    function = evaluation.module.function_of(evaluation.block)
    inside = (a for a in evaluation.entry.acts if a.function is function)
    also_trains = function is evaluation.entry.scope or any(a.do in LEARNS for a in inside)
    scope = evaluation.block if function is None or also_trains else function
    for node in ast.walk(scope):
        if isinstance(node, ast.Attribute) and node.attr in ("train", "eval"):
            return True
    return False


def _patch(evaluation: Evaluation) -> str | None:
    module, block, name = evaluation.module, evaluation.block, evaluation.forward.target
    edits = [inserting_before(module, block, f"{name}.eval()")]
    acts = evaluation.entry.acts
    returns = (a for a in acts if a.do is Do.TRAIN_MODE and a.loops)
    if not any(is_same_model(a, evaluation.forward) for a in returns):
        edits.append(inserting_after(module, block, f"{name}.train()"))
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


_AT_ONCE = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(F.dropout(x, 0.5{training}))

def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(200):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x)[train_nodes], labels[train_nodes]).backward()
        optimizer.step()
        {mode}
        with torch.no_grad():
            {scores}

main()
"""


def _at_once(
    mode: str = "pass",
    scores: str = "loss_val = F.cross_entropy(model(x)[val_nodes], labels[val_nodes])",
    training: str = ", training=self.training",
) -> Run:
    return make_run(
        sources={"train.py": _AT_ONCE.format(mode=mode, scores=scores, training=training)}
    )


def _program(validation: str = "pass", layer: str = "Dropout(0.5)") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(validation=validation, layer=layer)})


FIRES = {
    "dropout stays on": _program(),
    "batch norm stays on": _program(layer="BatchNorm1d(2)"),
    "all validation data at once": _at_once(),
}

SILENT = {
    "eval before the loop": _program("model.eval()"),
    "near miss: train(False)": _program("model.train(False)"),
    "eval before all data at once": _at_once("model.eval()"),
    "near miss: targets without gradients": _at_once(scores="soft = model(train_x)"),
    "near miss: a pass of nobody knows what": _at_once(scores="z = model(x)"),
    "near miss: dropout that samples predictions": _at_once(
        scores="test_draws = torch.stack([model(x_test) for _ in range(50)])"
    ),
    "near miss: dropout that no mode switches off": _at_once(training=""),
    "near miss: a layer that has no modes": _program(layer="LayerNorm(2)"),
}
