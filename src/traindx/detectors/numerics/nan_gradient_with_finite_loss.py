from dataclasses import replace
from math import nan
from typing import Any

from traindx.analysis.recordings.breakdowns import breakdown_of
from traindx.analysis.recordings.broken_steps import first_nan_gradient, suspect_operation
from traindx.analysis.recordings.observations import processes_of
from traindx.examples import Counts, Place, Process, Sample, Summary, recorded, with_source
from traindx.model.findings import at
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding


@detector(needs=("recording",), suggests=("unstable-operation", "incorrect-custom-backward"))
def check(run: Run) -> Findings:
    """The loss, the weights and the batch are finite, and the gradients of that step are NaN.

    ## What it detects
    The first step with NaN gradients, where the loss is an ordinary number, all weights are still
    finite, and gradients did not grow before; in float32, without a loss scaler.

    ## Why it matters
    The value is sound and its derivative does not exist: a root or a norm at 0, an arc cosine at 1,
    or a branch of `torch.where` that was not taken and is NaN. The next step makes every weight
    NaN.

    ## What to do
    Add an epsilon inside the root, take the squared distance, or clamp before the operation; in
    front of `torch.where` make both branches sound.

    ## When it is wrong
    A backward function of one's own may be at fault instead; `gradcheck` tells.
    """
    if breakdown_of(run) is not None:
        return  # a replay knows more
    for process in processes_of(run):
        sample = first_nan_gradient(process)
        if sample is None:
            continue
        place = suspect_operation(run, sample.place)
        says = f"the loss is {sample.loss:.4g} and all weights are finite; the gradients are NaN"
        yield finding(
            f"The gradients are NaN at step {sample.step} although the loss is {sample.loss:.4g}",
            {"unstable-operation": Strength.STRONG, "incorrect-custom-backward": Strength.WEAK},
            cite_record(process, sample.line, says, step=float(sample.step)),
            *([place[1]] if place else []),
            against={"nan-in-data": Strength.STRONG, "lr-too-high": Strength.MODERATE},
            place=place[0] if place else at(sample.place),
        )
        return


_SOUND = Summary("0", (32, 8), "float32", "cpu", -2.0, 2.0, 0.0, 1.0)


def _sample(step: int, grad: float, **told: Any) -> Sample:
    told = {"loss": 2.4, "weight_norms": (3.0,), "batch": (_SOUND,), **told}
    return Sample(4 + step, step, names=("0.weight",), grad_norms=(grad,), **told)


def _run(*samples: Sample, **counts: Any) -> Run:
    return recorded(Process(samples=samples, counts=Counts(99, steps=40, **counts)))


_LINE = Place("train.py", 5, "<module>", "loss.backward()")
_TEXT = "import torch\ndrift = torch.sqrt(sum((p - q).pow(2).sum() for p, q in pairs))\n"

FIRES = {
    "in the first step": _run(_sample(0, nan), _sample(1, nan, loss=nan, weight_norms=(nan,))),
    "later": _run(_sample(0, 0.3), _sample(20, 0.4), _sample(40, nan)),
    "a root in sight": with_source(_run(_sample(0, nan, place=_LINE)), _TEXT),
}

SILENT = {
    "near miss: gradients grew before": _run(_sample(0, 3e5), _sample(20, nan)),
    "near miss: the weights are NaN": _run(_sample(0, nan, weight_norms=(nan,))),
    "near miss: a scaler skips steps": _run(_sample(0, nan), scaled=40),
    "near miss: the batch is broken": _run(_sample(0, nan, batch=(replace(_SOUND, nonfinite=2),))),
    "sound": _run(_sample(0, 0.3), _sample(20, 0.2)),
}
