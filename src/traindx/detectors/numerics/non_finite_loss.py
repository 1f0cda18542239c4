"""The loss becomes NaN or infinite and stays so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from traindx.evidence import Evidence, Finding, Strength, cite, cite_setting
from traindx.examples import decay, join
from traindx.model import Run, Series, make_run
from traindx.registry import detector
from traindx.stats import curve

GREW = 2.0  # times the median of the run's last part, in the last points before the end: a climb
ASTRONOMICAL = 1e6  # a loss that begins here is in units that no learning rate fits
HALF = ("fp16", "half", "float16", "16", "16-mixed", "fp16-mixed")


@detector(
    needs=("loss/*",),
    suggests=(
        "lr-too-high",
        "missing-gradient-clipping",
        "unstable-operation",
        "nan-in-data",
        "fp16-overflow",
        "bad-initialisation",
        "empty-validation",
        "unnormalised-targets",
    ),
)
def check(run: Run) -> Iterator[Finding]:
    """The loss becomes NaN or infinite and stays so.

    ## What it detects
    The first point from which on the loss is no longer a number, and how the loss came there: from
    the first step on, after a climb, or from one healthy value to the next.

    ## Why it matters
    From that step on the weights are lost. How it came about tells the causes apart: a climb speaks
    for steps that are too large, a sudden NaN for an operation or a batch, NaN from the start for
    the data or the set-up.

    ## What to do
    `traindx run` replays the step and names the operation. Without it: check the batch for NaN,
    then look for log, sqrt, division and exp in the loss.

    ## When it is wrong
    Gaps that a tool wrote as `nan` between finite values are left alone; so is a single NaN that
    the run survived, as with a gradient scaler that skips a step.
    """
    for phase in ("train", "val"):
        loss = run.main_loss(phase)
        onset = None if loss is None else _onset(loss)
        if loss is None or onset is None:
            continue
        yield _finding(run, loss, onset, phase)
        return


def _onset(loss: Series) -> int | None:
    """The first of the non-finite points that last until the end."""
    finite = np.flatnonzero(loss.is_finite)
    onset = int(finite[-1]) + 1 if len(finite) else 0
    return onset if onset < len(loss) else None


def _finding(run: Run, loss: Series, onset: int, phase: str) -> Finding:
    before = loss.take(slice(0, onset)).finite()
    course, suggests = _course(before)
    half = _half_precision(run)
    if half and course != "after a climb":
        at_once = not len(before) or bool(np.isinf(loss.values[onset]))
        strength = Strength.STRONG if at_once else Strength.MODERATE
        suggests = {**suggests, "fp16-overflow": strength}
    if len(before) and abs(float(before.values[0])) > ASTRONOMICAL:
        suggests = {**suggests, "unnormalised-targets": Strength.MODERATE}
    if phase == "val":
        never = Strength.MODERATE if len(before) else Strength.STRONG
        course, suggests = "in validation only", {"empty-validation": never}
    word = "infinite" if np.isinf(loss.values[onset]) else "NaN"
    evidence = [cite(loss, f"{loss.origin.name} is {word} from {loss.when(onset)} on", onset, -1)]
    if len(before):
        last = float(before.values[-1])
        evidence.append(cite(before, f"its last finite value is {last:.4g}", -1, last=last))
    return Finding(
        claim=f"The {_called(phase)} loss is {word} since {loss.when(onset)}, {course}",
        strength=Strength.STRONG,
        evidence=(*evidence, *half),
        suggests=suggests,
        is_symptom=True,
        onset=float(loss.steps[onset]),
    )


def _called(phase: str) -> str:
    return "training" if phase == "train" else "validation"


def _course(before: Series) -> tuple[str, Mapping[str, Strength]]:
    """How the loss came to be non-finite, and what that speaks for."""
    if not len(before):
        return "from the first point on", {
            "nan-in-data": Strength.MODERATE,
            "unstable-operation": Strength.MODERATE,
            "bad-initialisation": Strength.WEAK,
            "lr-too-high": Strength.WEAK,
        }
    if _climbed(before):
        return "after a climb", {
            "lr-too-high": Strength.STRONG,
            "missing-gradient-clipping": Strength.WEAK,
            "unstable-operation": Strength.WEAK,
        }
    return "at once, without a climb", {
        "unstable-operation": Strength.MODERATE,
        "nan-in-data": Strength.MODERATE,
        "lr-too-high": Strength.WEAK,
    }


def _climbed(before: Series) -> bool:
    values = before.values
    if len(values) < 3:
        return bool(len(values) == 2 and values[1] > 10 * abs(values[0]))
    reference = curve(values).value_at(curve(values).best)
    recent = values[-min(3, len(values) - 1) :]
    return bool(recent[-1] > GREW * abs(reference) and recent[-1] > GREW * np.median(values))


def _half_precision(run: Run) -> tuple[Evidence, ...]:
    for name in (
        "fp16",
        "precision",
        "mixed_precision",
        "dtype",
        "torch_dtype",
        "half",
        "amp_dtype",
    ):
        setting = run.config.find(name)
        if setting is not None and (setting.value is True or str(setting.value).lower() in HALF):
            return (cite_setting(setting, f"half precision: {setting.key} = {setting.value}"),)
    return ()


_NAN = np.full(20, np.nan)

FIRES = {
    "sudden NaN": make_run({"loss/train": join(decay(200), _NAN)}),
    "climbs into NaN": make_run(
        {"loss/train": join(decay(50), 0.5 * np.exp(np.arange(12.0)), [np.inf], _NAN)}
    ),
    "NaN from the start": make_run({"loss/train": _NAN}),
    "NaN in validation only": make_run({"loss/train": decay(50), "loss/val": np.full(5, np.nan)}),
}

SILENT = {
    "near miss: one NaN that the run survived": make_run(
        {"loss/train": join(decay(100), [np.nan], decay(100, 0.4, 0.3))}
    ),
    "a healthy run": make_run({"loss/train": decay(200), "loss/val": decay(10)}),
}
