import numpy as np

from traindx.analysis.metrics.scores import POINTS, is_often_wrong
from traindx.analysis.program.training.claims import program_of, source_text
from traindx.analysis.program.training.widths import softmax_over_one
from traindx.examples import decay, flat, join, logged, make_run, rounded
from traindx.registry import Findings, Run, cite, detector, finding, suggested

NOTHING = 1e-7
DECIMALS = 6  # a log that prints fewer rounds a small loss to zero


@detector(needs=("loss",), suggests=("wrong-loss-for-task", "degenerate-batch", "padding-in-loss"))
def check(run: Run) -> Findings:
    """The training loss is exactly zero from its first value to its last.

    ## What it detects
    A loss of which no value differs from zero. With the source at hand, also whether a
    cross-entropy is taken over a single output.

    ## Why it matters
    A model that knows nothing yet is wrong about something. A loss of zero says nothing and has no
    gradient: softmax over one output is always 1, whatever the model computes.

    ## What to do
    One output for two classes: `BCEWithLogitsLoss`. An amount: `MSELoss`. Several classes: as many
    outputs as classes. Else look at what is compared: the target may be the prediction itself, or
    everything may be masked.

    ## When it is wrong
    A log that prints few digits shows zeros for a small loss; with fewer than six it counts only
    where the source shows the single output, or an accuracy says that many answers are wrong.
    """
    loss = run.objective()
    finite = loss.finite() if loss is not None else None
    if loss is None or finite is None or len(finite) < POINTS or len(finite) < len(loss):
        return
    if float(np.abs(finite.values).max()) > NOTHING:
        return
    says = f"{loss.name} is 0 at all of its {len(finite)} points"
    single = softmax_over_one(program_of(run))
    if single is None and 0 < loss.origin.decimals < DECIMALS and not is_often_wrong(run):
        return
    evidence = [cite(loss, says, 0, -1)]
    if single is not None:
        shown = f"the softmax over one output is always 1: `{source_text(single)}`"
        evidence.append(single.cite(shown))
    yield finding(
        "The loss is zero from the first step, so nothing can be learnt",
        suggested(moderate="wrong-loss-for-task", weak="degenerate-batch padding-in-loss"),
        *evidence,
        shows="wrong-loss-for-task" if single else None,
        place=single.module.location(single.node) if single else None,
    )


_SOURCE = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, {outputs}))
criterion = nn.CrossEntropyLoss()
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""
_ZERO = flat(40, 0.0, noise=0.0)


def _run(outputs: int) -> Run:
    text = _SOURCE.format(outputs=outputs)
    return logged(loss_train=_ZERO, sources={"train.py": text})


def _rounded(accuracy: float | None = None) -> Run:
    told = {} if accuracy is None else {"accuracy/val": flat(40, accuracy, noise=0.0)}
    return rounded(make_run({"loss/train": _ZERO, **told}), "loss/train", 2)


FIRES = {
    "zero all along": logged(loss_train=_ZERO),
    "a cross-entropy over one output": _run(1),
    "over two": _run(2),
    "rounded, and wrong half of the time": _rounded(0.48),
}

SILENT = {
    "it learns": logged(loss_train=decay(40)),
    "near miss: falls to zero": logged(loss_train=join([0.3], _ZERO)),
    "near miss: rounded by the log": _rounded(),
    "near miss: rounded, and right": _rounded(0.99),
    "near miss: three points": logged(loss_train=_ZERO[:3]),
}
