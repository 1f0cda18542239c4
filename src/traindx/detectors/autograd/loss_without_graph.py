"""Backward was called on a loss that no graph leads to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from traindx.evidence import Finding, Strength, cite_event
from traindx.model import Event, Failure, Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.cuts import cuts_before, freezing, switched_off
from traindx.source.errors import (
    Culprit,
    Site,
    explain,
    make_failed_run,
    match_root,
    module_at,
    site_of,
)

MESSAGE = re.compile(
    r"element (\d+) of (?:tensors|variables|variables tuple) does not require grad"
    r"|does not require grad and does not have a grad_fn"
    r"|Inference tensors cannot be saved for backward|called backward on a tensor .{0,40}no_grad"
)
HAND_OVER = ("training_step", "compute_loss")  # Lightning, the Trainer of transformers
GUESSES = {
    "detached-loss": Strength.STRONG,
    "no-grad-training": Strength.MODERATE,
    "frozen-parameters": Strength.MODERATE,
    "non-differentiable-operation": Strength.MODERATE,
}


NO_INPUT = re.compile(r"None of the inputs have requires_grad=True")
CHECKPOINTED = {"frozen-parameters": Strength.STRONG, "no-grad-training": Strength.WEAK}


@detector(needs=("failure",), suggests=tuple(GUESSES))
def check(run: Run) -> Iterator[Finding]:
    """Backward is called on a value that depends on no parameter.

    ## What it detects
    "element 0 of tensors does not require grad and does not have a grad_fn". With the source, what
    cut the graph: `.item()`, `.detach()`, `torch.tensor(…)` around the loss, argmax or a
    comparison, `no_grad`, gradients that are switched off for good, or a model whose parameters are
    all frozen.

    ## Why it matters
    Nothing can learn; and `loss.requires_grad_()`, an often-read advice, makes the error go away
    while still nothing learns.

    ## What to do
    Take out what cuts the graph between the model's output and the loss.

    ## When it is wrong
    Without the source the four reasons cannot be told apart, and are listed side by side.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, _ = hit
    shows, culprit = _reason(run, failure)
    claim = "Backward is called on a value without a graph: no parameter can get a gradient"
    if culprit is not None:
        claim += f"; {culprit.says}"
    if culprit is None and (warned := _checkpointed(run)) is not None:
        claim += (
            "; gradient checkpointing got inputs without gradients, as of frozen embeddings: call "
            "`model.enable_input_require_grads()`, or checkpoint with `use_reentrant=False`"
        )
        notes = [cite_event(warned)]
        yield explain(run, failure, claim, suggests=CHECKPOINTED, notes=notes)
        return
    suggests = {} if shows else GUESSES
    yield explain(run, failure, claim, shows=shows, suggests=suggests, culprit=culprit)


def _checkpointed(run: Run) -> Event | None:
    """The warning of torch's checkpointing, whose older form needs an input with a graph."""
    return next((e for e in run.events if NO_INPUT.search(e.text)), None)


def _reason(run: Run, failure: Failure) -> tuple[str | None, Culprit | None]:
    project = project_of(run)
    ran = [m for f in failure.frames if (m := module_at(project, f.file)) is not None]
    off = switched_off(project, ran)
    if off is not None:
        return "no-grad-training", off
    for site in _sites(run, failure, project):
        for cause, culprit in cuts_before(project, site):
            return cause, culprit
    for module in project.modules:
        frozen = freezing(module)
        if frozen is not None:
            return "frozen-parameters", frozen
    return None, None


def _sites(run: Run, failure: Failure, project: Project) -> list[Site]:
    """The statement that raised, or else what hands the loss to a framework, or calls backward."""
    site = site_of(run, failure)
    if site is not None and ".backward(" in ast.unparse(site.node):
        return [site]
    handed = [
        Site(m, n)
        for m in project.modules
        for name, function in m.functions.items()
        if name.rpartition(".")[2] in HAND_OVER
        for n in ast.walk(function)
        if isinstance(n, ast.Return)
    ]
    if handed or site is not None:
        return handed or [s for s in (site,) if s is not None]
    return [
        Site(m, n)
        for m in project.modules
        for n in ast.walk(m.tree)
        if isinstance(n, ast.Expr) and ast.unparse(n).endswith(".backward()")
    ]


_ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
_LOOP = """
import torch
for x, y in loader:
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


_MODULE = """
import torch
import lightning
class Lit(lightning.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        with torch.no_grad():
            out = self.net(x)
        return torch.nn.functional.cross_entropy(out, y)
trainer.fit(model)
"""


def _run(loss: str) -> Run:
    text = _LOOP.format(loss=loss)
    return make_failed_run(_ERROR, "loss.backward()", sources={"train.py": text})


FIRES = {
    "the message alone": make_failed_run(_ERROR, "loss.backward()"),
    "checkpointing of frozen inputs": replace(
        make_failed_run(_ERROR, "trainer.train()"),
        events=(
            Event(
                "warning",
                "UserWarning: None of the inputs have requires_grad=True. Gradients will be None",
                "train.log",
                "line 80",
            ),
        ),
    ),
    "a new tensor": _run("torch.tensor(criterion(model(x), y))"),
    "argmax": _run("criterion(model(x).argmax(1).float(), y)"),
    "gradients switched off": make_failed_run(
        _ERROR,
        "loss.backward()",
        sources={
            "train.py": "import torch\ntorch.set_grad_enabled(False)\n"
            + _LOOP.format(loss="criterion(model(x), y)")
        },
    ),
    "no_grad in a hook of a framework": make_failed_run(
        _ERROR, "trainer.fit(model)", sources={"train.py": _MODULE}
    ),
}

SILENT = {
    "near miss: a graph used twice": make_failed_run(
        "RuntimeError: Trying to backward through the graph a second time", "loss.backward()"
    ),
    "no error": make_run(sources={"train.py": _LOOP.format(loss="criterion(model(x), y)")}),
}
