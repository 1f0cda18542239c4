from dataclasses import replace
from typing import Any

import numpy as np

from traindx.analysis.recordings.traces import told_once, traces_of
from traindx.analysis.recordings.weight_updates import (
    growth,
    large_updates,
    lasting_updates,
    wrecking_update,
)
from traindx.examples import Floats, decay, flat, recorded, watched, weights
from traindx.model.recording import LossInput, Optimizer, Process, Summary
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding


@detector(needs=("recording", "loss"), suggests=("lr-too-high",))
def check(run: Run) -> Findings:
    """A step changes the weights by a tenth of their norm or more, and the loss does not fall.

    ## What it detects
    Sampled steps, the first ten left out, in most of which the middle weight matrix of the model
    changes by more than a tenth of its norm, in a run whose loss does not come down; or steps of
    a twelfth of it on average that leave the weights three times their size and the loss where it
    was; or one of the first steps that is larger than the weights and leaves them several times
    their size.

    ## Why it matters
    What one batch teaches, the next one overwrites.

    ## What to do
    Lower the learning rate tenfold; one percent per step is already much.

    ## When it is wrong
    Small matrices and the first steps of Adam change a lot in runs that learn well; where the loss
    falls, nothing is said, and this only supports what the loss shows, unless the loss rose
    several-fold with such a first step, or the weights grew with the steps. A model of one layer,
    and one that has large targets to reach, may need such steps.
    """
    yield from told_once(run, lambda process: _look(run, process))


def _look(run: Run, process: Process) -> Findings:
    traces = [t for t in traces_of(process) if t.is_owned and t.is_matrix]
    if (wreck := wrecking_update(run, process, traces)) is not None:
        sample, ratio, step = wreck.sample, wreck.ratio, wreck.sample.step
        says = f"the median weight matrix changes by {ratio:.1f} times its norm at step {step}"
        strength = Strength.STRONG if wreck.is_seen else Strength.MODERATE
        yield finding(
            f"The update of step {step} is {ratio:.1f} times as large as the weights, {wreck.then}",
            {"lr-too-high": strength},
            cite_record(process, sample.line, says, step=step, ratio=ratio),
            strength=strength,
            is_symptom=wreck.is_seen,
        )
    elif (lasting := lasting_updates(run, process, traces)) is not None:
        first, last, mean, gained = lasting
        says = f"steps {first.step} to {last.step} change the median matrix by {mean:.0%} each"
        yield finding(
            f"Each step changes the weights by {mean:.0%} of their norm, the weights grow "
            f"{growth(traces):.1f}-fold, and the loss falls by only {max(gained, 0.0):.0%}",
            {"lr-too-high": Strength.STRONG},
            cite_record(process, first.line, says, step=first.step, ratio=mean),
        )
    elif (large := large_updates(run, traces)) is not None:
        sample, ratio, middle = large
        says = f"the median weight matrix changes by {ratio:.0%} of its norm at step {sample.step}"
        yield finding(
            f"Each step changes the weights by {middle:.0%} of their norm and the loss does not "
            "fall",
            {"lr-too-high": Strength.MODERATE},
            cite_record(process, sample.line, says, step=sample.step, ratio=ratio),
            strength=Strength.MODERATE,
            is_symptom=False,
        )


_NAMES = ("0.weight", "2.weight", "4.weight")


def _run(ratio: float, loss: Floats, early: int = 99, **fields: Any) -> Run:
    fields |= {"count": 8, "update_ratios": lambda i: (ratio if i < early else 1e-3,) * 3}
    return recorded(watched(*weights(*_NAMES), **fields), loss_train=loss)


def _replaced(*loss: float) -> Run:
    """A first step of seven times the weights, which are large from then on."""
    return _run(7.0, np.array(loss), 1, weight_norms=lambda i: (8.0 if i else 1.0,) * 3)


def _swollen(loss: Floats, end: float, **fields: Any) -> Run:
    """Steps of a seventh of the weights, as long as the rate is high, that add up in their norm."""
    norms = np.linspace(1.0, end, 12)
    process = watched(
        *weights(*_NAMES), count=12, step=lambda i: 4 * i, weight_norms=lambda i: (norms[i],) * 3,
        update_ratios=lambda i: (0.15 if i < 7 else 0.01,) * 3, **fields,
    )  # fmt: skip
    return recorded(replace(process, counts=None), loss_train=loss)


def _erasing(loss: Floats, kind: str = "AdamW", target: float = 1.0) -> Run:
    """A first step of seven sound layers, after which the weights are thirty times as large."""
    given = LossInput("mse_loss", target=Summary(dtype="float32", mean=0.0, std=target))
    process = watched(
        *weights(*_NAMES), count=8, optimizer=Optimizer(2, type=kind, size=3), losses=(given,),
        weight_norms=lambda i: (120.0 if i else 4.0,) * 3,
        update_ratios=lambda i: (0.01 if i else 7.0,) * 3,
    )  # fmt: skip
    return recorded(process, loss_train=loss)


_CHANCE = [0.7] * 30
_SLOW = decay(80, 4.2, 1.9)

FIRES = {
    "half of the weights in every step": _run(0.5, flat(80, 2.5, noise=0.1)),
    "a first step that replaces the weights": _replaced(0.7, 400.0, 90.0, 10.0, 2.0, *_CHANCE),
    "steps that only swell the weights": _swollen(flat(80, 1.39, noise=0.02), 8.0),
    "a first step that outdoes every layer": _erasing(_SLOW),
}

SILENT = {
    "usual steps": _run(1e-3, flat(80, 2.5, noise=0.1)),
    "near miss: large, and learning": _run(0.5, decay(80)),
    "near miss: small weights replaced, and learning": _replaced(*decay(40)),
    "near miss: only at the start": _run(0.5, flat(80, 2.5, noise=0.1), early=1),
    "near miss: swelling, and learning": _swollen(decay(80), 8.0),
    "near miss: the weights keep their size": _swollen(flat(80, 1.39, noise=0.02), 1.2),
    "near miss: gradients pile up": _swollen(flat(80, 1.39, noise=0.02), 8.0, carried=True),
    "near miss: large targets to reach": _erasing(_SLOW, target=300.0),
    "near miss: plain descent from small weights": _erasing(_SLOW, kind="SGD"),
    "near miss: it got over the first step": _erasing(decay(80, 4.2, 0.1)),
}
