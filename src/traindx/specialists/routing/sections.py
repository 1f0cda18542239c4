"""A question's own words, apart from the code, logs and tracebacks that were pasted with it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCED = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_OPEN_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*\Z", re.MULTILINE | re.DOTALL)
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\).*?^(?=[A-Za-z_])[^\n]*(?:\n|\Z)", re.MULTILINE | re.DOTALL
)
_CODE = re.compile(
    r"^\s*(?:(?:def|class|import|from|for|with|while|if|elif|else|try|except|return|@\w+)\b.*[:)\w]$"
    r"|[\w.\[\], ]+ ?[-+*/]?= ?\S.*$|[\w.]+\(.*\)$|[#>$] ?\S)"
)
_STATEMENT = re.compile(r"[=(){}\[\]:;]")
_NUMBER = re.compile(r"(?<![A-Za-z])\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2,}")
NUMBERS_IN_A_LOG_LINE = 2
WORDS_PER_NUMBER = 3  # prose that cites figures has more words to each of them


@dataclass(frozen=True, slots=True)
class Sections:
    """The prose of a question and what was pasted into it."""

    prose: str
    pasted: str


def split_sections(text: str) -> Sections:
    """Separate what the author says from code blocks, tracebacks and log lines."""
    if "\n" not in text.strip():
        return Sections(text, "")
    pasted: list[str] = []

    def take(found: re.Match[str]) -> str:
        pasted.append(found[0])
        return "\n\n"

    rest = text
    for pattern in (_FENCED, _OPEN_FENCE, _TRACEBACK):
        rest = pattern.sub(take, rest)
    prose: list[str] = []
    for line in rest.splitlines():
        (pasted if _is_log(line) or _is_code(line) else prose).append(line)
    told = "\n".join(prose)
    return Sections(told, "\n".join(pasted)) if _WORD.search(told) else Sections(text, text)


def _is_log(line: str) -> bool:
    numbers = len(_NUMBER.findall(line))
    return numbers >= NUMBERS_IN_A_LOG_LINE and len(_WORD.findall(line)) <= (
        WORDS_PER_NUMBER * numbers
    )


def _is_code(line: str) -> bool:
    return bool(_CODE.match(line)) and bool(_STATEMENT.search(line))
