"""Gradients are gone when the optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx.analysis.recordings.traces import latest_optimizers, told_once, traces_of
from traindx.examples import recorded, watched, weights
from traindx.model.findings import Finding, Strength, at, cite_record
from traindx.model.recording import Optimizer, Process
from traindx.model.run import Run
from traindx.registry import detector

ENOUGH = 2  # samples
NEARLY_ALL = 0.9  # of them


@detector(needs=("recording",), suggests=("gradients-cleared-before-step",))
def check(run: Run) -> Iterator[Finding]:
    """Backward gave gradients, and the step that followed found none.

    ## What it detects
    Nine of ten sampled steps of an optimizer that found the gradients of its parameters cleared
    although backward had just computed them.

    ## Why it matters
    The step has nothing to apply: weights do not change, or change by weight decay alone.

    ## What to do
    Move `zero_grad()` to before `backward()`, or after `step()`.

    ## When it is wrong
    Updates that are applied inside of backward clear gradients on purpose; where weights move
    without weight decay, nothing is said.
    """
    yield from told_once(run, _look)


def _look(process: Process) -> Iterator[Finding]:
    for optimizer in latest_optimizers(process):
        samples = [s for s in process.samples if s.optimizer == optimizer.id]
        known = [s for s in samples if s.cleared is not None]
        cleared = [s for s in known if s.cleared]
        if len(cleared) < ENOUGH or len(cleared) < NEARLY_ALL * len(known):
            continue
        if _moves(process, optimizer) and not _decays(optimizer):
            continue
        first = cleared[0]
        says = f"gradients were gone before the step in {len(cleared)} of {len(known)} samples"
        yield Finding(
            claim="Gradients are cleared between backward and the step",
            strength=Strength.STRONG,
            evidence=(
                cite_record(process, first.line, says, step=first.step, cleared=len(cleared)),
            ),
            shows="gradients-cleared-before-step",
            is_symptom=True,
            onset=float(first.step),
            location=at(optimizer.place or first.place),
        )


def _moves(process: Process, optimizer: Optimizer) -> bool:
    own = (t for t in traces_of(process) if t.parameter.optimizer == optimizer.id)
    return any(t.has_moved for t in own)


def _decays(optimizer: Optimizer) -> bool:
    return any(bool(g.get("weight_decay")) for g in optimizer.groups)


_NAMES = ("0.weight", "2.weight")


def _process(cleared: bool | None, *, moves: bool = False, decay: float = 0.0) -> Process:
    process = watched(*weights(*_NAMES), still=() if moves else _NAMES, cleared=cleared)
    settings = {"lr": 0.1, "weight_decay": decay}
    return replace(process, optimizers=(Optimizer(2, type="AdamW", groups=(settings,), size=2),))


FIRES = {
    "cleared, nothing moves": recorded(_process(True)),
    "cleared, only decay moves": recorded(_process(True, moves=True, decay=0.01)),
}

SILENT = {
    "a right loop": recorded(_process(False, moves=True)),
    "near miss: applied within backward": recorded(_process(True, moves=True)),
    "near miss: not known": recorded(_process(None)),
}
