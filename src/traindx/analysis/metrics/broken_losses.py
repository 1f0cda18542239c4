"""Losses that become NaN or infinite: since when, and how they came there."""

import re
from collections.abc import Mapping

import numpy as np

from traindx.analysis.curves import curve, since
from traindx.model.findings import Evidence, Strength, cite, cite_event, cite_setting, suggested
from traindx.model.metric_names import HIGHER_IS_BETTER, PHASES, kind_of, phase_of, words
from traindx.model.run import Failure, Run, Series

GREW = 2.0  # times the median of the run's last part, in the last points before the end: a climb
BURST = 1e4  # times the last whole loss that was logged
LOST = 1e30  # float32 ends at 3e38: what is here has overflowed on its way already
_PLAIN = frozenset({"loss", "step", "epoch", "total", "avg", "mean", *PHASES})
HALF_SETTINGS = (
    "fp16", "precision", "mixed_precision", "dtype", "torch_dtype", "half", "amp_dtype",
)  # fmt: skip
HALF = ("fp16", "half", "float16", "16", "16-mixed", "fp16-mixed")
CLIMBED: Mapping[str, Strength] = suggested(
    strong="lr-too-high", weak="missing-gradient-clipping unstable-operation"
)
OPEN_COURSE: Mapping[str, Strength] = suggested(
    moderate="nan-in-data unstable-operation lr-too-high"
)
_NOT_A_NUMBER = r"(?:nan|inf(?:init[ey])?|not finite|non-?finite)"
# an error that a training loop raises on purpose: "Loss is nan, stopping training"
TOLD = re.compile(
    rf"(?i)\bloss(?:es)?\b.{{0,40}}\b{_NOT_A_NUMBER}\b|\b{_NOT_A_NUMBER}\b.{{0,20}}\bloss(?:es)?\b"
)


def last_word(run: Run, loss: Series, phase: str) -> Series | None:
    """Return another telling of the same loss in the same log that has the last word on it.

    Such is the line with which a loop gives up, and the logged loss beside a progress bar that
    shows NaN because it was never told of a loss.
    """
    for other in run.matching(f"loss/{phase}@*"):
        if other.origin.artifact != loss.origin.artifact or not len(other.places):
            continue
        is_plain = set(words(other.origin.name)) <= _PLAIN
        is_last = bool(len(loss.places)) and other.places[-1] >= loss.places[-1]
        if is_plain and is_last and other.is_finite[-1] != loss.is_finite[-1]:
            gives_up = len(other) == 1 and other.places[-1] > loss.places[-1]
            never_told = not bool(loss.is_finite.any()) and len(other) > 1
            if gives_up or never_told:
                return other
    return None


def is_written_as_zero(run: Run) -> bool:
    """Tell whether the training loss is 0 to the end: so a Trainer writes one that is NaN."""
    loss = run.main_loss("train")
    return loss is not None and len(loss) > 1 and not loss.values[-2:].any()


def has_scored(run: Run) -> bool:
    """Tell whether something was right in validation: then it has examples and labels."""
    scores = [s for name in run.series if kind_of(name) in HIGHER_IS_BETTER - {"reward"}
              and phase_of(name) == "val" and (s := run.get(name)) is not None]  # fmt: skip
    return any(s.last > 0 for s in scores)


def lost_since(loss: Series) -> int | None:
    """The first of the non-finite points that last until the end."""
    onset = since(~(np.abs(loss.values) < LOST))  # which NaN is not
    return onset if onset < len(loss) else None


def has_burst(run: Run, last: float) -> bool:
    """Tell whether a part of the loss was huge where the whole was NaN: it climbed in between."""
    ends = (part.last for part in run.matching("loss/train/*"))
    return any(np.isfinite(end) and abs(end) > BURST * max(1.0, abs(last)) for end in ends)


def has_climbed(before: Series) -> bool:
    """Tell whether a loss rose in its last points before it broke."""
    values = before.values
    if len(values) < 3:
        return bool(len(values) == 2 and values[1] > 10 * abs(values[0]))
    reference = curve(values).value_at(curve(values).best)
    recent = values[-min(3, len(values) - 1) :]
    return bool(recent[-1] > GREW * abs(reference) and recent[-1] > GREW * np.median(values))


def cite_half_precision(run: Run) -> tuple[Evidence, ...]:
    """Cite the setting that turns half precision on."""
    for name in HALF_SETTINGS:
        setting = run.config.find(name)
        if setting is not None and (setting.value is True or str(setting.value).lower() in HALF):
            return (
                cite_setting(setting, f"half precision is on ({setting.key} = {setting.value})"),
            )
    return ()


def cite_announced_half(run: Run) -> tuple[Evidence, ...]:
    """Cite the line that announces half precision."""
    return tuple(cite_event(e) for e in run.events if e.kind == "half-precision")[:1]


def value_word(value: float) -> str:
    """Return NaN, infinite, or the value itself."""
    return "NaN" if np.isnan(value) else "infinite" if np.isinf(value) else f"{value:.2g}"


def course_before(run: Run, before: Series) -> tuple[str, Mapping[str, Strength]]:
    """How the loss came to be non-finite, and what that speaks for."""
    if not len(before):
        return "from the first point on", suggested(
            moderate="nan-in-data unstable-operation", weak="bad-initialisation lr-too-high"
        )
    if has_climbed(before) or has_burst(run, float(before.values[-1])):
        return "after a rise", CLIMBED
    return "suddenly, without a rise", suggested(
        moderate="unstable-operation nan-in-data", weak="lr-too-high"
    )


def lost_loss(run: Run) -> tuple[Series, int, Series, str] | None:
    """Return the first main loss that is lost: it, since where, what it was before, its phase."""
    for phase in ("train", "val"):
        loss = run.main_loss(phase)
        told = None if loss is None else last_word(run, loss, phase) or loss
        onset = None if told is None else lost_since(told)
        if loss is not None and told is not None and onset is not None:
            before = loss if len(told) == 1 else told.take(slice(0, onset))
            return told, onset, before.finite(), phase
    return None


def gave_up(run: Run) -> Failure | None:
    """Return the error by which a training loop stopped itself since its loss was broken."""
    last = run.failures[-1] if run.failures else None
    is_told = last is not None and TOLD.search(last.message.split("\n", 1)[0])
    return last if is_told else None


def cite_last_finite(before: Series | None) -> tuple[Evidence, ...]:
    """Return the last value that a loss had before it broke; nothing where it had none."""
    if before is None or not len(before):
        return ()
    last = float(before.values[-1])
    return (cite(before, f"its last finite value is {last:.4g}", -1, last=last),)
