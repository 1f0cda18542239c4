"""Right verdicts, missed troubles and false alarms on labelled artifacts of real public runs.

    python -m bench.real_runs [-v]
    python -m bench.real_runs --metrics [part of a file name …]

The folder with the artifacts and their `labels.csv` (columns file, repo, should_alarm, causes) is
named by REAL_RUNS, or is `../shared/real_runs` beside the repository. It is no part of the
repository; without it this bench says so and passes.

What is fitted on such runs is fitted again without the repositories that are judged, so that the
figures hold for repositories that nothing was fitted on. The second form compares the metrics
that are read with those that a person finds. A `yes` row is right where an accepted
cause stands first, or where the answer is open and `abstain` is accepted; it is counted apart
whether such an open answer names candidates. `-v` lists the rows that are not right.
"""

from __future__ import annotations

import csv
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import real_metrics
from traindx import Diagnosis, Run, TraindxError, diagnose, open_run
from traindx.analysis.courses import fitted_weights

FOLDS = 10
Table = Mapping[str, float]
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "real_runs"


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled artifact."""

    path: Path
    file: str
    repository: str
    label: str  # no, yes or soft
    causes: frozenset[str]
    first: str  # the cause that its reader put first
    kind: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of an artifact."""

    row: Row
    status: str
    causes: tuple[str, ...]
    candidates: tuple[str, ...]
    summary: str

    @property
    def outcome(self) -> str:
        """Return one word for how the answer stands to the label."""
        if self.row.label != "yes":
            return "root cause" if self.causes else self.status
        if self.causes:
            return "right" if self.causes[0] in self.row.causes else "other cause"
        if self.status == "insufficient_evidence" and "abstain" in self.row.causes:
            return "open, with candidates" if self.candidates else "open"
        return "open, wanted a cause" if self.status == "insufficient_evidence" else self.status

    @property
    def is_right(self) -> bool:
        """Tell whether the answer is one that the label accepts."""
        if self.row.label == "yes":
            return self.outcome in ("right", "open, with candidates", "open")
        return self.row.label == "soft" or not self.causes


def runs_folder() -> Path | None:
    """Return the folder with the labelled runs, if there is one."""
    folder = Path(os.environ.get("REAL_RUNS") or BESIDE)
    return folder if (folder / "labels.csv").is_file() else None


def read_rows(folder: Path) -> list[Row]:
    """Return the labelled artifacts of a folder."""
    with (folder / "labels.csv").open() as table:
        return [
            Row(
                folder / row["file"],
                row["file"],
                row.get("repo") or row["file"],
                row["should_alarm"],
                frozenset(row["causes"].split(";")),
                row["causes"].split(";")[0],
                row.get("label", ""),
            )
            for row in csv.DictReader(table)
        ]


def judge(row: Row, run: Run | str) -> Answer:
    """Diagnose one artifact."""
    if isinstance(run, str):
        return Answer(row, "unreadable", (), (), run)
    found: Diagnosis = diagnose(run)
    return Answer(
        row,
        found.status.value,
        tuple(h.cause for h in found.root_causes),
        tuple(h.cause for h in found.hypotheses),
        found.summary,
    )


def read_all(rows: Sequence[Row]) -> Mapping[str, Run | str]:
    """Return the runs by the names of their files; in place of one that cannot be read, why."""
    runs: dict[str, Run | str] = {}
    for row in rows:
        try:
            runs[row.file] = open_run(row.path)
        except TraindxError as error:
            runs[row.file] = str(error)
    return runs


@contextmanager
def weighed_by(overfitting: Table, trouble: Table) -> Iterator[None]:
    """Judge by these weights in place of those that are shipped."""
    shipped = fitted_weights.OVERFITTING, fitted_weights.TROUBLE
    fitted_weights.OVERFITTING, fitted_weights.TROUBLE = overfitting, trouble
    try:
        yield
    finally:
        fitted_weights.OVERFITTING, fitted_weights.TROUBLE = shipped


def fold_of(rows: Sequence[Row]) -> Mapping[str, int]:
    """Return the fold of each repository."""
    return {name: i % FOLDS for i, name in enumerate(sorted({r.repository for r in rows}))}


def left_out(rows: Sequence[Row], runs: Mapping[str, Run | str]) -> list[Answer]:
    """Judge every row by what is fitted without the repositories of its fold."""
    from bench.curve_weights import overfitting_examples, table_of, trouble_examples

    sources = [overfitting_examples(rows, runs), trouble_examples(rows, runs)]
    fold = fold_of(rows)
    answers: dict[str, Answer] = {}
    for part in range(FOLDS):
        tables = [
            table_of([e for e in given if fold[e.repository] != part], names)
            for given, names in sources
        ]
        with weighed_by(tables[0], tables[1]):
            own = [r for r in rows if fold[r.repository] == part]
            answers |= {r.file: judge(r, runs[r.file]) for r in own}
    return [answers[r.file] for r in rows]


def print_counts(title: str, answers: Sequence[Answer]) -> None:
    """Print how many answers there are of each kind."""
    print(f"\n## {title}\n")
    for label in ("yes", "no", "soft"):
        own = [a for a in answers if a.row.label == label]
        told = Counter(a.outcome for a in own)
        counts = ", ".join(f"{name} {count}" for name, count in told.most_common())
        right = sum(a.is_right for a in own)
        share = f"{right} of {len(own)} right ({100 * right / max(1, len(own)):.1f} %); "
        print(f"{label}: {'' if label == 'soft' else share}{counts}")


def print_causes(answers: Sequence[Answer]) -> None:
    """Print how often each accepted cause is reached."""
    print("\n| accepted cause | rows | right | no problem found |\n|---|---|---|---|")
    yes = [a for a in answers if a.row.label == "yes"]
    for cause, count in Counter(c for a in yes for c in a.row.causes).most_common():
        own = [a for a in yes if cause in a.row.causes]
        clean = sum(a.status == "no_problem_found" for a in own)
        print(f"| {cause} | {count} | {sum(a.is_right for a in own)} | {clean} |")


def print_misses(answers: Sequence[Answer]) -> None:
    """Print every answer that is not right."""
    print("\n| artifact | label | answer | says |\n|---|---|---|---|")
    for a in answers:
        if not a.is_right:
            wanted = f"{a.row.label} {a.row.kind}: {', '.join(sorted(a.row.causes))}"
            named = ", ".join(a.causes) or a.status
            print(f"| {a.row.file[:70]} | {wanted} | {a.outcome}: {named} | {a.summary[:140]} |")


def main() -> int:
    """Print the counts, by weights of other repositories and by those that are shipped."""
    folder = runs_folder()
    if folder is None:
        print("real runs: no folder with labels.csv; name one by REAL_RUNS; skipped")
        return 0
    if "--metrics" in sys.argv:
        return real_metrics.main(folder, sys.argv[sys.argv.index("--metrics") + 1 :])
    rows = read_rows(folder)
    runs = read_all(rows)
    print(f"{len(rows)} artifacts of {len({r.repository for r in rows})} repositories")
    answers = left_out(rows, runs)
    print_counts("Fitted without the repository that is judged", answers)
    print_counts("As shipped", [judge(r, runs[r.file]) for r in rows])
    print_causes(answers)
    if "-v" in sys.argv:
        print_misses(answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
