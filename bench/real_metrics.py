"""Are the metrics of real files read under their right names?

    REAL_RUNS=folder python -m bench.real_runs --metrics [part of a file name …]

`real_metrics.json` says for each file which main series a person finds in it: canonical name (or
names, where two are as good), number of points, first and last value. A file is read right if every
one of them is there and no other series claims to be a loss, an accuracy, a reward, a learning rate
or a gradient norm of the whole run. A series whose number of points is null is shown by a progress
bar, whose refreshes nobody counts.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from traindx import TraindxError, open_run
from traindx.model.run import Series

TRUTH = Path(__file__).with_name("real_metrics.json")
MAIN = frozenset(
    {"loss/train", "loss/val", "loss/test", "accuracy/train", "accuracy/val", "accuracy/test",
     "reward/train", "reward/val", "lr", "grad_norm"}
)  # fmt: skip
COUNT = 0.03  # share of the points that may lack or be too many: damaged lines, a repeated end
VALUE = 0.01  # relative

Told = tuple[str, int | None, float, float]


def truth() -> dict[str, list[Told]]:
    """Return what a person finds in each file."""
    return {f: [tuple(s) for s in told] for f, told in json.loads(TRUTH.read_text()).items()}


def faults(told: Sequence[Told], found: Mapping[str, Series]) -> list[str]:
    """Return what is wrong with the series that were found in a file."""
    said = []
    for names, count, first, last in told:
        wanted = names.split("|")
        right = [found[n] for n in wanted if n in found and _is_it(found[n], count, first, last)]
        if right:
            continue
        near = next((found[n] for n in wanted if n in found), None)
        was = "nothing" if near is None else _shown(len(near), near.values[0], near.values[-1])
        said.append(f"{names}: {_shown(count, first, last)} read as {was}")
    known = {n for names, *_ in told for n in names.split("|")}
    said += [f"{n} is none" for n, s in found.items() if n in MAIN - known and len(s)]
    return said


def _is_it(series: Series, count: int | None, first: float, last: float) -> bool:
    if not len(series):
        return False
    if count is not None and abs(len(series) - count) > max(1.0, COUNT * count):
        return False
    ends = [(float(series.values[-1]), last)]
    ends += [(float(series.values[0]), first)] if count is not None else []
    return all(_is_near(ours, theirs) for ours, theirs in ends)


def _is_near(ours: float, theirs: float) -> bool:
    if not (math.isfinite(ours) and math.isfinite(theirs)):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    return abs(ours - theirs) <= VALUE * max(abs(ours), abs(theirs)) + 1e-12


def _shown(count: int | None, first: float, last: float) -> str:
    return f"{'?' if count is None else count} points {first:.5g} to {last:.5g}"


def main(folder: Path, parts: Sequence[str] = ()) -> int:
    """Print the files that are read wrong, and the counts."""
    right = files = missed = series = 0
    for file, told in truth().items():
        path = folder / file
        if not path.exists() or (parts and not any(p in file for p in parts)):
            continue
        try:
            found = open_run(path).series
            said = faults(told, found)
        except TraindxError as error:
            said = [f"not read: {error}"] if told else []
        files += 1
        right += not said
        series += len(told)
        missed += sum(" read as " in s for s in said)
        for fault in said:
            print(f"{file}: {fault}")
    share = right / files if files else math.nan
    print(f"\n{right} of {files} files right ({share:.1%}); {missed} of {series} series missed")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
