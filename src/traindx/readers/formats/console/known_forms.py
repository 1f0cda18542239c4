"""Lines whose numbers no name binds: Darknet, the COCO evaluation, DARTS, the log of a nanoGPT."""

from __future__ import annotations

import re

from traindx.readers.formats.console.marks import find_average_precision
from traindx.readers.formats.console.numbers import Number
from traindx.readers.formats.console.plan import DIGIT, NOTHING, Field, LinePlan
from traindx.readers.formats.console.tokens import Digits
from traindx.readers.formats.console.vocabulary import PHASE_WORDS

_DARKNET = re.compile(
    r"\s*(0): (?:-?0\.0|-?nan), (-?0\.0|-?nan) avg(?: loss)?, (0\.0) rate, 0\.0 seconds, 0 images"
)
_FRACTION = r"-?0\.0(?:[eE][-+]?0)?|-?nan|-?inf"
_NANO = re.compile(rf"\s*(0) (train|val|valid|test) ({_FRACTION})\s*$")  # "250 val 3.2851"
# "train 050 2.107612e+00 20.649511 71.844368": step, loss, top-1 and top-5 accuracy
_DARTS = re.compile(
    rf"(?:^|.*\s)(train|valid|val|test) (0) ({_FRACTION}) (0\.0) (0\.0)\s*$", re.DOTALL
)


def known_form(text: str, digits: Digits) -> LinePlan | None:
    """Return what a line says that is of one of these forms."""
    if (precision := find_average_precision(text)) is not None:
        return _average_precision(precision, digits)
    if "avg" in text and (darknet := _DARKNET.match(text)) is not None:
        return _darknet(darknet, digits)
    if len(text) > 200 or not ("train" in text or "val" in text or "test" in text):
        return None
    if (nano := _NANO.match(text)) is not None:
        return _phased(nano[2], ["loss"], _numbers(nano, (1, 3), digits))
    if (darts := _DARTS.match(text)) is not None:
        names = ["loss", "top1", "top5"]
        return _phased(darts[1], names, _numbers(darts, (2, 3, 4, 5), digits))
    return None


def _numbers(match: re.Match[str], groups: tuple[int, ...], digits: Digits) -> list[Number]:
    found = []
    for group in groups:
        text = match[group].lstrip("-")
        if text in {"nan", "inf"}:
            found.append(Number(special=float(match[group])))
        elif (number := digits.number(match[group], match.start(group))) is not None:
            found.append(number)
    return found


def _phased(said: str, names: list[str], numbers: list[Number]) -> LinePlan:
    """Return the plan of a line with a phase, a step and values in a fixed order."""
    phase = PHASE_WORDS[said]
    step, *values = numbers
    fields = tuple(Field(n, v, phase) for n, v in zip(names, values, strict=True))
    return LinePlan(f"s 0 {said} {len(fields)}", fields, step, sets_clock=phase == "train")


def _darknet(match: re.Match[str], digits: Digits) -> LinePlan:
    """Read a line of Darknet, whose numbers stand before their names."""
    step, rate = (digits.number(match[i], match.start(i)) for i in (1, 3))
    loss = (
        Number(special=float("nan"))
        if match[2].endswith("nan")
        else digits.number(match[2], match.start(2))
    )
    if step is None or loss is None or rate is None:
        return NOTHING
    return LinePlan(
        template="s 0 darknet",
        fields=(Field("avg loss", loss, None), Field("learning rate", rate, None)),
        step=step,
    )


def _average_precision(match: re.Match[str], digits: Digits) -> LinePlan:
    """Read a line of the COCO evaluation, such as the mean AP over all overlaps."""
    kind, overlap, area, _, value = match.groups()
    number = digits.number(value, match.start(5))
    if number is None:
        return NOTHING
    name = f"{'AP' if kind == 'Precision' else 'recall'}@{overlap}"
    runs = digits.within(match.start(2), match.end(2))
    if area != "all":
        name += f" {area}"
    if kind == "Recall":
        name += " top 0"
        runs += digits.within(match.start(4), match.end(4))
    made = Field(name.replace("0", DIGIT), number, "val", None, runs)
    return LinePlan(template=f"coco {kind} {area}", fields=(made,), sets_clock=False)
