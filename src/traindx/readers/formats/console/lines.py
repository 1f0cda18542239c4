"""What a line is apart from its metrics: an event, an error, a heading, the header of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traindx.model.metric_names import in_one_word
from traindx.readers.formats.console.happenings import NOTABLE
from traindx.readers.formats.console.plan import NOTHING, LinePlan
from traindx.readers.formats.console.vocabulary import PHASE_WORDS, is_known

_ERROR = re.compile(
    r"raceback \(most|File \"[^\"]{1,400}\", line 0|\w(?:Error|Exception|Interrupt|Exit)\b"
    r"|Fatal Python|[Ss]egmentation fault"
    r"|core dumped|terminate called|CUDA error|\bKilled\b|Aborted|Out of memory|out of memory"
    r"|^\w*(?:Error|Exception)\b|ChildFailed|exitcode|Signal 0|Bus error|Illegal instruction"
    r"|what\(\):|Assertion|assert|Unsupported|Graph break|Watchdog caught"
    r"|DataLoader worker \(|error encountered in worker|exits with return code"
    r"|by an inplace operation|at least two devices|cannot be multiplied|same first dimension"
)
_RULER = re.compile(r"[\s|+*_=─━┃│┏┓┗┛┡┩╇└┘├┤┴┬┼-]{4,}$")
_WORDS = re.compile(r"[^\W\d_][\w-]*")
_CELLS = re.compile(r"\s{2,}|\t|\s*[|│┃]\s*")
_SECTION = re.compile(r"^\|\s*([\w-]+)/\s*\|\s*\|\s*$")
_BAR = re.compile(r":?\s*\d+%(?:\|| +\d+/\d+ \[).*$")
_REMARK = re.compile(r"^\s*# (?=\S)")  # a table that was copied into a comment
_CLASS_REPORT = re.compile(r"\s*Class\s+Images\s.*\bmAP")
# YOLOv5 and its kin print the terms of the loss by their bare names
DETECTION_LOSSES = frozenset(
    {"box", "obj", "cls", "dfl", "giou", "iou", "seg", "kpt", "kpto", "theta", "landmark", "total"}
)
_SETTING = re.compile(r"\s+[A-Za-z_]\w*=[^\s,=]+,\s*$")  # of a dataclass, one to a line
_SETTINGS = re.compile(  # "Reward weights: accuracy=0.7, format=0.3"
    r"(?i)[^:={]{0,60}\b(?:weights|coef\w*|hyper-?param\w*|config\w*|settings|arguments|args|options"
    r"|thresholds?)\s*[:=]\s*[{(\[]?\s*['\"]?[a-z_]\w*['\"]?\s*[:=]"
)
_SHARE, _SPENT = re.compile(r"\s0\.0%"), re.compile(r"\s0\.0[mun]?s(?=\s|$)")
_ALNUM = re.compile(r"[^\W_]")


def classify(text: str) -> LinePlan:
    """Return a plan without numbers for a line: what the line itself says."""
    stripped = text.strip()
    if not stripped:
        return NOTHING
    if _ALNUM.search(stripped) is None:
        return LinePlan(is_ruler=True) if _RULER.match(stripped) else NOTHING
    is_error = _ERROR.search(text) is not None
    is_notable = NOTABLE.search(text) is not None
    heading = _heading(stripped) if len(stripped) < 100 else None
    is_header = len(stripped) < 1000 and _is_header(stripped)
    if not (is_error or is_notable or heading is not None or is_header):
        return NOTHING
    return LinePlan(heading=heading, is_header=is_header, is_notable=is_notable, is_error=is_error)


def _heading(text: str) -> str | None:
    """Return the phase that a short line without numbers announces, "" if it ends one."""
    section = _SECTION.match(text)
    if section is not None:
        return PHASE_WORDS.get(section[1].lower(), "")
    if "Testing net (#" in text:
        return None  # Caffe's: what follows says itself whether it is of the test
    said = _WORDS.findall(text)
    if not 0 < len(said) <= 6:
        return None
    phases = [PHASE_WORDS[w.lower()] for w in said if w.lower() in PHASE_WORDS]
    return phases[0] if phases else None


def split_cells(text: str) -> list[str]:
    """Return the cells of a line of a table, names cleaned of brackets and colons."""
    text = _REMARK.sub("", _BAR.sub("", text))
    cells = [c for cell in _CELLS.split(text) if (c := cell.strip(" ():|│┃"))]
    return ["epoch", "step", *cells[2:]] if cells[:2] == ["E", "#"] else cells  # spaCy


def split_words(text: str) -> list[str]:
    """Return the cells of a line that single blanks separate."""
    return in_one_word(_REMARK.sub("", _BAR.sub("", text))).split()


def is_no_report(text: str) -> bool:
    """Tell a field of a printed configuration and a row of a profiler from a report."""
    if _SETTING.match(text) is not None or _SETTINGS.match(text) is not None:
        return True
    return len(_SHARE.findall(text)) > 1 and len(_SPENT.findall(text)) > 1


def is_class_report(text: str) -> bool:
    """Tell the header of YOLOv5's evaluation, whose bar stands in the same line."""
    return _CLASS_REPORT.match(text) is not None


def is_detection(columns: Sequence[str]) -> bool:
    """Tell whether these are the columns of YOLOv5's training: ``Epoch gpu_mem box obj cls``."""
    return columns[0].lower() == "epoch" and "gpu_mem" in (c.lower() for c in columns[1:2])


def _is_header(text: str) -> bool:
    cells = split_cells(text)
    if len(cells) < 3 or any(c[:1] in "0-+." for c in cells):
        cells = split_words(text)
        if any(c[:1] in "0-+." for c in cells):
            return False
    if len(cells) > 3 and (is_detection(cells) or is_class_report(text)):
        return True
    return len(cells) >= 3 and sum(len(c) < 40 and is_known(c) for c in cells) >= 2
