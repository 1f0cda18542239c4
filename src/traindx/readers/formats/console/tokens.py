"""The words and numbers of a line whose digits are masked, and the noise between them.

In a masked line every run of digits is one `0` (`,000` in groups of thousands), so that all
patterns see the shape of a number and never its value.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from traindx.readers.formats.console.numbers import Number

MAX_TOKENS = 400  # of a line; a longer one is data

_LETTER = "A-Za-z_\u00c0-\u024f\u0370-\u052f"
_EXTENSIONS = (
    "pyc?|cc|cpp|cu|so|jsonl?|ya?ml|toml|txt|log|csv|tsv|pth?|ckpt|bin|safetensors|h0|hdf0|npz"
    "|npy|pkl|pickle|onnx|keras|png|jpe?g|zip|gz|tar|tgz|ipynb|sh|cfg|ini|parquet|arrow|wav"
    "|mp0"
)
_END = r"(?![A-Za-z_0]|\.0)"
_NUMBER = r"[-+]?(?:0(?:,000)+(?:\.0)?|0,0(?![,.0])|0?\.0|0\.?)(?:[eE][-+]?0)?"
_UNIT = (
    r"%|(?:ms|us|µs|μs|ns|secs?|mins?|hrs?|hours?|days?|s|m|h|it|GiB|MiB|KiB|TiB|GB|MB|KB|TB|Gb|Mb"
    r"|G|M|K|B|T|k|x|X|dB|px|W|°?C)(?:/[A-Za-z]+)?|/s(?:ec)?"
)
_NOISE = "|".join(
    (
        r"\w+://\S+",
        r"(?<![\w.])(?:~|\.{1,2})?/(?!\s)[\w.+@-]+(?:/[\w.+@=-]*)+",
        r"(?<!\w)[A-Za-z]:\\\S+",
        rf"(?<![\w.])[\w./+=-]{{1,300}}\.(?:{_EXTENSIONS})(?![A-Za-z_0])(?::0(?::\w+)?)?",
        # dates, times and versions
        r"(?<![\w.])0[-/.]0[-/.]0(?:[T_ ]\s?0:0(?::0)?(?:[.,]0)?)?(?:Z|\s?[-+]0:?0)?(?!\w)",
        r"^\W{0,2}0[-/]0(?=\s0:0:0)",
        r"(?<![\w.])v?0(?:\.0){2,}[\w.+-]*",
        r"(?<![\w.])0:0(?::0)?(?:[.,]0)?(?![\w])",
        r"(?<![\w.])0x[0-9a-fA-F]+",
        r"\[NeMo [A-Z] 0-0-0 0:0:0 \w+:0\]",
        # shapes
        r"(?<![\w.])0(?:\s?[x×*]\s?0)+(?![\w.])",
        r"[\[(]\s*0(?:\s*,\s*0(?![.\w]))+\s*,?\s*[\])]",
    )
)
TOKEN = re.compile(
    rf"(?P<noise>{_NOISE})"
    r"|(?P<special>(?<![A-Za-z_0.])[-+]?(?:[nN][aA][nN]|[iI]nf(?:inity)?|INF(?:INITY)?)"
    r"(?:xxx)?(?![A-Za-z_0]))"  # PaddleOCR fills a short value up with x
    rf"|(?P<word>[{_LETTER}](?:[{_LETTER}0]|[./@+-](?=[{_LETTER}0]))*(?:\([A-Z]\))?%?)"
    rf"|(?P<other>[^\W\d_{_LETTER}]+)"
    rf"|(?P<number>{_NUMBER})(?P<unit>(?:{_UNIT}))?(?:st|nd|rd|th)?{_END}"
    r"|(?P<ident>0[\w.-]*)"
)
_PARTS = re.compile(
    r"([-+]?)(?:(0(?:,000)+|0)(?:[.,](0?))?|\.(0))(?:[eE]([-+]?)(0))?$"
)  # sign, whole, fraction, fraction alone, sign of the exponent, exponent
SPECIALS = {"nan": float("nan"), "inf": float("inf"), "infinity": float("inf")}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or noise, with its place in the line."""

    kind: str
    start: int
    end: int
    text: str
    unit: str = ""
    value: Number | None = None


class Digits:
    """The runs of digits of a masked line by their place."""

    def __init__(self, text: str) -> None:
        self.starts = [m.start() for m in re.finditer("0+", text)]

    def index(self, position: int) -> int:
        """Return which run starts at a position."""
        return bisect_left(self.starts, position)

    def within(self, start: int, end: int) -> tuple[int, ...]:
        """Return the runs between two positions."""
        return tuple(range(self.index(start), self.index(end)))

    def number(self, text: str, at: int) -> Number | None:
        """Return the number that stands at a position."""
        parts = _PARTS.match(text)
        if parts is None:
            return None
        fraction = 4 if parts[4] else 3
        return Number(
            whole=self.within(at + parts.start(2), at + parts.end(2)) if parts[2] else (),
            fraction=self.index(at + parts.start(fraction)) if parts[fraction] else None,
            exponent=self.index(at + parts.start(6)) if parts[6] else None,
            is_negative=parts[1] == "-",
            is_small=parts[5] == "-",
        )


def tokenize(text: str, digits: Digits) -> list[Token]:
    """Return the tokens of a masked line in order."""
    tokens: list[Token] = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or ""
        start, end = match.span()
        if match["number"] is not None:
            value = digits.number(match["number"], start)
            kind = "number" if value is not None else "noise"
            tokens.append(Token(kind, start, end, match["number"], match["unit"] or "", value))
        elif kind == "special":
            value = Number(special=_special(match[0]))
            tokens.append(Token(kind, start, end, match[0], "", value))
        else:
            kind = {"other": "word", "ident": "noise"}.get(kind, kind)
            tokens.append(Token(kind, start, end, match[0]))
        if len(tokens) >= MAX_TOKENS:
            break
    return tokens


def _special(text: str) -> float:
    value = SPECIALS[text.lstrip("+-").lower().removesuffix("xxx")]
    return -value if text.startswith("-") else value
