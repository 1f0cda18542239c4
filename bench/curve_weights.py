"""Fits what the figures of curves weigh, on labelled real runs, cross-validated by repository.

    REAL_RUNS=folder python -m bench.curve_weights

Prints the tables for `traindx.analysis.courses.fitted_weights`, and how well they do on
repositories that were left out of the fit. `OVERFITTING` tells overfitting from healthy runs by the
most suspicious held-out loss of a run; `TROUBLE` tells runs in which readers found a fault from
those in which they found none. `soft` rows, on which readers differ, are left out of the fit and of
the count.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.real_runs import FOLDS, Row, fold_of, read_all, read_rows, runs_folder
from traindx import Run
from traindx.analysis.courses.doubts import doubts
from traindx.analysis.courses.held_out import pairs_of
from traindx.analysis.courses.main_metrics import main_metrics

PENALTY = 1.0  # on the squared weight of a figure of unit spread
ROUNDS = 60  # of Newton's method, each damped by the penalty
PASSES = 3  # of choosing the most suspicious loss of a run and fitting again
SUSPECTED = 0.5

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """The figures of a labelled run: one row, or one for every held-out loss."""

    repository: str
    file: str
    is_positive: bool
    figures: Floats


def overfitting_examples(
    rows: Sequence[Row], runs: Mapping[str, Run | str]
) -> tuple[list[Example], list[str]]:
    """Return the labelled runs that have a held-out loss, and the names of its figures."""
    made, names = [], []
    for row in rows:
        is_positive = row.label == "yes" and row.first == "overfitting"
        if row.label == "soft" or (row.label == "yes" and not is_positive):
            continue
        run = runs[row.file]
        figures = [] if isinstance(run, str) else [pair.figures() for pair in pairs_of(run)]
        if figures:
            names = list(figures[0])
            table = np.array([[f[n] for n in names] for f in figures])
            made.append(Example(row.repository, row.file, is_positive, table))
    return made, names


def trouble_examples(
    rows: Sequence[Row], runs: Mapping[str, Run | str]
) -> tuple[list[Example], list[str]]:
    """Return the labelled runs that are judged by metrics, and the names of their figures."""
    made, names = [], []
    for row in rows:
        run = runs[row.file]
        if row.label == "soft" or isinstance(run, str) or run.failures or not main_metrics(run):
            continue
        figures = doubts(run)
        names = list(figures)
        table = np.array([[figures[n] for n in names]])
        made.append(Example(row.repository, row.file, row.label == "yes", table))
    return made, names


def fit(given: Sequence[Example], names: Sequence[str]) -> Floats:
    """Return the constant and the weights of a logistic regression with a penalty."""
    weights = np.zeros(len(names) + 1)
    for _ in range(PASSES):
        chosen = np.array([e.figures[int(np.argmax(e.figures @ weights[1:]))] for e in given])
        weights = _logistic(chosen, np.array([e.is_positive for e in given]), names)
    return weights


def _logistic(figures: Floats, labels: NDArray[np.bool_], names: Sequence[str]) -> Floats:
    """Fit weights that are not negative: each figure is made to speak for overfitting."""
    scale = np.maximum(figures.std(axis=0), 1e-3)
    given = np.column_stack([np.ones(len(figures)), figures / scale])
    free = np.ones(given.shape[1], dtype=bool)
    # a repository counts by its label as much as the other label does in all
    balance = np.where(labels, 0.5 / max(labels.mean(), 1e-9), 0.5 / max(1 - labels.mean(), 1e-9))
    while True:
        weights = np.zeros(given.shape[1])
        for _ in range(ROUNDS):
            chance = 1.0 / (1.0 + np.exp(-np.clip(given @ weights, -30, 30)))
            penalty = np.full(len(weights), PENALTY)
            penalty[0] = 1e-6
            slope = given.T @ (balance * (chance - labels)) + penalty * weights
            bend = (given * (balance * chance * (1 - chance))[:, None]).T @ given
            step = np.linalg.solve((bend + np.diag(penalty))[np.ix_(free, free)], slope[free])
            weights[free] -= step
        wrong = [i for i in range(1, len(weights)) if free[i] and weights[i] < 0]
        if not wrong:
            return np.concatenate([weights[:1], weights[1:] / scale])
        free[wrong] = False


def table_of(given: Sequence[Example], names: Sequence[str]) -> Mapping[str, float]:
    """Return the fitted weights by name."""
    return dict(zip(["constant", *names], map(float, fit(given, names)), strict=True))


def suspicion(example: Example, weights: Floats) -> float:
    """Return the probability by the most suspicious held-out loss of a run."""
    return float(1.0 / (1.0 + np.exp(-(weights[0] + (example.figures @ weights[1:]).max()))))


def left_out(
    given: Sequence[Example], names: Sequence[str], fold: Mapping[str, int]
) -> Mapping[str, float]:
    """Return the probability of each run by a fit without the repositories of its fold."""
    found: dict[str, float] = {}
    for part in range(FOLDS):
        rest = [e for e in given if fold[e.repository] != part]
        weights = fit(rest, names)
        found |= {e.file: suspicion(e, weights) for e in given if fold[e.repository] == part}
    return found


def main() -> int:
    """Print the table and its cross-validated figures."""
    folder = runs_folder()
    if folder is None:
        print("real runs: no folder with labels.csv; skipped")
        return 0
    rows = read_rows(folder)
    runs = read_all(rows)
    for title, (given, names) in {
        "OVERFITTING": overfitting_examples(rows, runs),
        "TROUBLE": trouble_examples(rows, runs),
    }.items():
        print_fit(title, given, names, fold_of(rows))
    return 0


def print_fit(
    title: str, given: Sequence[Example], names: Sequence[str], fold: Mapping[str, int]
) -> None:
    """Print a table, and what it says of repositories that it was not fitted on."""
    weights = fit(given, names)
    print(f"{title}: Mapping[str, float] = {{")
    for name, weight in zip(["constant", *names], weights, strict=True):
        print(f'    "{name}": {weight:.2f},')
    print("}")
    out = left_out(given, names, fold)
    for is_positive in (True, False):
        own = [e for e in given if e.is_positive is is_positive]
        suspected = [e for e in own if out[e.file] > SUSPECTED]
        kind = "labelled so" if is_positive else "others"
        print(f"{kind}: {len(suspected)} of {len(own)} suspected, repositories left out")
    if "-v" in sys.argv:
        for e in sorted(given, key=lambda e: out[e.file]):
            own_fit = suspicion(e, weights)
            print(f"{out[e.file]:.2f} {own_fit:.2f} {e.is_positive:d} {e.file[:90]}")


if __name__ == "__main__":
    sys.exit(main())
