"""False alarms and missed troubles on labelled artifacts of real public runs.

    REAL_RUNS=folder python -m bench.real_runs [-v]
    REAL_RUNS=folder python -m bench.real_runs --metrics [part of a file name …]

The second form compares the metrics that are read with those that a person finds. The folder holds
the artifacts and a `labels.csv` with the columns file, should_alarm (no, yes, soft) and causes. It
is not part of this repository; without it this bench says so and passes.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

from bench import real_metrics
from traindx import TraindxError, diagnose, open_run


def judge(path: Path) -> tuple[str, list[str], str]:
    """Return the status, the root causes and the summary for one artifact."""
    try:
        found = diagnose(open_run(path))
    except TraindxError as error:
        return "unreadable", [], str(error)
    causes = [f"{h.cause} {h.confidence:.2f}" for h in found.root_causes]
    return found.status.value, causes, found.summary


def main() -> int:
    """Print one row per artifact and the counts that matter."""
    folder = os.environ.get("REAL_RUNS") or "../shared/real_runs"
    if not (Path(folder) / "labels.csv").exists():
        print("real runs: set REAL_RUNS to a folder with labels.csv; skipped")
        return 0
    if "--metrics" in sys.argv:
        return real_metrics.main(Path(folder), sys.argv[sys.argv.index("--metrics") + 1 :])
    false_alarms = missed = read = 0
    print("| artifact | label | status | root causes |\n|---|---|---|---|")
    for row in csv.DictReader((Path(folder) / "labels.csv").open()):
        status, causes, summary = judge(Path(folder) / row["file"])
        read += status != "unreadable"
        alarm = row["should_alarm"]
        is_false = alarm == "no" and bool(causes)
        is_missed = alarm == "yes" and status in ("no_problem_found", "unreadable")
        false_alarms += is_false
        missed += is_missed
        mark = " **FALSE ALARM**" if is_false else " **MISSED**" if is_missed else ""
        named = ", ".join(causes) or "–"
        print(f"| {row['file'][:60]} | {alarm} {row['causes']} | {status}{mark} | {named} |")
        if "-v" in sys.argv:
            print(f"    {summary}")
    print(f"\n{read} read, {false_alarms} false alarms, {missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
