"""What stands around the metrics of a line: colours, progress bars, ranks, bracketed remarks.

Each function blanks what it has understood and keeps every other character in its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from traindx.readers.formats.console.numbers import Number
from traindx.readers.formats.console.tokens import Digits
from traindx.readers.formats.console.vocabulary import PHASE_WORDS

ANSI = re.compile(
    r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.|\[0(?:;0)*m"
)
_PERCENT_BAR = re.compile(r"(?:0|0\.0)%[|▕┃│][^|▏┃│A-Za-z=:]{0,300}[|▏┃│]")
_SHARE_DONE = re.compile(r"0%\s+$")
_TQDM = re.compile(
    r"(?P<x>0)(?P<xf>\.0)?(?P<xu>[kMGTit]{0,2})(?:/(?P<n>0)(?P<nf>\.0)?(?P<nu>[kMGT]?))?\s*"
    r"\[(?:0:)?0:0(?:<[^,\]]*)?(?P<rate>,\s*[^,\]=]*)?(?=[,\]])"
)
_DRAWN = re.compile(r"[█▏▎▍▌▋▊▉░▒▓━╸╺╶─▰▱●○■□⣿⠀]{2,}|\[[=#>.\- ]{5,}\]|\[=*>?\.*\]")
_MEAN_OF = re.compile(r"(?<![\w.])(avg|mean|average|max|min|std)\(([A-Za-z_]\w*)\)(?=\s*[:=])")
_TENSOR = re.compile(r"(?<=[:=\s])(?:tensor|array|Array|float|(?:np|numpy|jnp|torch)\.\w+)\(\[?")
_REMARK = re.compile(r"\(([^()0]{1,40})\)(?=['\"]?\s*[:=\[])")
_RANK = re.compile(
    r"(?i)[\[(]\s*(?:global[ _-]?)?(?:rank|gpu|default)[ :=_#-]{0,2}(0)\s*[\])]:?"
    r"|^\W{0,3}(?:rank|gpu)[ :=#-]{0,2}(0)(?=[\s:,\])|-])[:,\])|-]?"
    r"|(?<![\w-])rank=(0)(?![.\w])[,:]?"
)
_LABEL = re.compile(r"^\s*(?:\[(0)\]:?|(0):)(?=\s+\S)")
_COCO = re.compile(
    r"Average (Precision|Recall)\s+\(A[PR]\) @\[ IoU=(0\.0(?::0\.0)?)\s*\| area=\s*(\w+) \|"
    r" maxDets=\s*(0) \] = (-?0\.0)"
)
_TURN = re.compile(r"第\s*(0)\s*(?:/\s*0)?\s*(?:轮|个?周期|回|エポック|个?\s*epoch)")
_OWNER = re.compile(r"(?<=[A-Za-z0])'s(?= )")  # LightGBM: "valid_0's auc: 0.9"
_NTH_EPOCH = re.compile(r"(?<![\w./-])(0)(?:/0)?epoch(?=[\s:])")  # ESPnet: "7epoch results:"
_WRITTEN = re.compile(r"\.py:0\]\s+\[(0)\]\s+(?=[\w/]{1,80}=)")  # CLU: "x.py:35] [400] loss=3.2"
_PAIR = re.compile(r"^\W{0,2}\[\s*(0)\s*,\s*(0)\s*\](?=\W{0,3}[A-Za-z])")


@dataclass(slots=True)
class Marks:
    """What was understood, and the text that is left."""

    text: str
    rank: Number | None = None
    label: Number | None = None
    epoch: Number | None = None
    step: Number | None = None
    total: Number | None = None
    is_bar: bool = False
    counts_epochs: bool = False  # the bar moves on once per epoch

    def blank(self, start: int, end: int) -> None:
        self.text = self.text[:start] + " " * (end - start) + self.text[end:]


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """Return a text with every match of a pattern replaced by blanks."""
    return pattern.sub(lambda m: " " * len(m[0]), text)


def strip_marks(text: str, digits: Digits) -> Marks:
    """Take colours, ranks, bars and remarks out of a masked line."""
    marks = Marks(blanked(ANSI, text) if "\x1b" in text or "[0" in text else text)
    if "an" in text or "RAN" in text or "pu" in text or "PU" in text or "efault" in text:
        _take_rank(marks, digits)
    if marks.rank is None:
        _take_label(marks, digits)
    _take_bar(marks, digits)
    if "'s " in marks.text:
        marks.text = _OWNER.sub("", marks.text)  # which joins the words around it
    if "(" in marks.text:
        marks.text = _MEAN_OF.sub(r"\1 \2 ", marks.text)  # "avg(utility)=0.4"
        marks.text = blanked(_TENSOR, marks.text)
        marks.text = _REMARK.sub(_keep_phase, marks.text)
    if "第" in marks.text and (turn := _TURN.search(marks.text)) is not None:
        marks.epoch = Number((digits.index(turn.start(1)),))
        marks.blank(*turn.span())
    if "0epoch" in text and (nth := _NTH_EPOCH.search(marks.text)) is not None:
        marks.epoch = Number((digits.index(nth.start(1)),))
        marks.blank(*nth.span())
    if ".py:0] [0]" in text and (written := _WRITTEN.search(marks.text)) is not None:
        marks.step = Number((digits.index(written.start(1)),))
        marks.blank(written.start(1) - 1, written.end(1) + 1)
    if (pair := _PAIR.match(marks.text)) is not None:
        marks.epoch = Number((digits.index(pair.start(1)),))
        marks.step = Number((digits.index(pair.start(2)),))
        marks.blank(0, pair.end())
    return marks


def _keep_phase(match: re.Match[str]) -> str:
    """Blank a remark between a name and its value, but for a phase: ``Loss (train): 0.4``."""
    if match[1].strip().lower() in PHASE_WORDS:
        return f"\x02{match[1]}\x02"
    return " " * len(match[0])


def _take_rank(marks: Marks, digits: Digits) -> None:
    match = _RANK.search(marks.text, 0, 160)
    if match is None:
        return
    group = next(g for g in (1, 2, 3) if match[g])
    marks.rank = Number((digits.index(match.start(group)),))
    marks.blank(*match.span())


def _take_label(marks: Marks, digits: Digits) -> None:
    match = _LABEL.match(marks.text)
    if match is not None:
        marks.label = Number((digits.index(match.start(1 if match[1] else 2)),))
        marks.blank(*match.span())


def _take_bar(marks: Marks, digits: Digits) -> None:
    text = marks.text
    if "[" in text and (match := _TQDM.search(text)) is not None:
        is_counted = match["n"] is not None or match["xu"] == "it"
        if is_counted or match["rate"]:
            marks.is_bar = True
            if is_counted and not (match["xf"] or match["nf"] or match["nu"]):
                marks.step = Number((digits.index(match.start("x")),))
                marks.total = Number((digits.index(match.start("n")),)) if match["n"] else None
            before = text[: match.start()].lower()
            marks.counts_epochs = "epoch" in (match["rate"] or "").lower() or bool(
                re.search(r"epochs?\W*(?:0%|$)", before)
            )
            marks.blank(*match.span())
            if (share := _SHARE_DONE.search(text, 0, match.start())) is not None:
                marks.blank(*share.span())  # a bar whose drawing was left out
    if "%" in text:
        shortened = blanked(_PERCENT_BAR, marks.text)
        marks.is_bar |= shortened != marks.text
        marks.text = shortened
    drawn = blanked(_DRAWN, marks.text)
    marks.is_bar |= drawn != marks.text
    marks.text = drawn


def find_average_precision(text: str) -> re.Match[str] | None:
    """Match a line of the COCO evaluation: kind, overlap, area, number of detections, value."""
    return _COCO.search(text) if "IoU=" in text else None
