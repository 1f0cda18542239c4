"""How many decimals a log prints of what never changes: ``lr=0.00000`` need not be zero.

Where values differ, they tell the digits they were printed with. A constant one may have lost them:
0.53100 is read as 0.531, and a rate of 4e-6 as 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from traindx.model.run import Series
from traindx.readers.text import decode

ENOUGH = 3  # points; fewer are equal by chance
LOOKED_AT = 1 << 18  # bytes: a constant is printed early as it is late
_BETWEEN = r"[\"']?\s{0,3}[:=|]?\s{0,6}[\"']?"
_FIXED = r"([+-]?\d+\.(\d+))(?![\d.eE])"


def with_decimals(series: Mapping[str, Series], path: Path) -> dict[str, Series]:
    """Return the series, those that never change with the decimals they are printed with."""
    constant = [n for n, s in series.items() if len(s) >= ENOUGH and _is_constant(s)]
    if not constant:
        return dict(series)
    with path.open("rb") as file:
        text = decode(file.read(LOOKED_AT))
    return {n: _told(s, text) if n in constant else s for n, s in series.items()}


def _is_constant(series: Series) -> bool:
    return bool(np.all(series.values == series.values[0]))


def _told(series: Series, text: str) -> Series:
    name = r"[\s_]{1,3}".join(map(re.escape, series.origin.name.split()))
    for found in re.finditer(rf"(?i)(?<![A-Za-z]){name}{_BETWEEN}{_FIXED}", text):
        if float(found[1]) == float(series.values[0]):
            return replace(series, origin=replace(series.origin, decimals=len(found[2])))
    return series
