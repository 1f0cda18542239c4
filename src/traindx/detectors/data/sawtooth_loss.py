"""The loss repeats the same course in every epoch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx.analysis.curves import running_median
from traindx.examples import decay, flat, make_run
from traindx.model.findings import Evidence, Finding, Strength, cite, cite_setting
from traindx.model.run import Floats, Run, Series
from traindx.registry import detector

REPEATS = 0.6  # correlation of one epoch's course with the next, on average
EPOCHS = 3
POINTS = 10  # per epoch, to have a course at all
KEEPS = 0.35  # correlation of the course with itself a point later; of noise it is near 0
SWING = 3.0  # of the course within an epoch, over the noise around it


@detector(needs=("loss",), suggests=("unshuffled-training-data",))
def check(run: Run) -> Iterator[Finding]:
    """The training loss follows the same course in every epoch.

    ## What it detects
    A loss whose ups and downs within an epoch repeat from epoch to epoch, well above the noise.

    ## Why it matters
    The batches come in the same order: sorted by class, by source or by length. The model chases
    the part it saw last and forgets the part before.

    ## What to do
    Shuffle the training data (`shuffle=True`, or a sampler with `set_epoch`).

    ## When it is wrong
    A running average that is reset every epoch, or a rate that cycles once per epoch, repeats too;
    a course that only falls within each epoch is taken for the former and left alone. So is what
    repeats from batch to batch without a course: mixed data in a fixed order are no fault.
    """
    loss = run.objective()
    if loss is None or not len(loss.epochs):
        return
    courses = _courses(loss.finite())
    if courses is None:
        return
    likeness = _likeness(courses)
    mean = courses.mean(axis=0)
    around = float(np.median(np.std(courses - mean, axis=0)))
    swing = float(np.ptp(mean))
    if likeness < REPEATS or swing < SWING * around or _only_falls(mean):
        return
    if not _has_shape(loss.finite()):
        return
    told = _unshuffled(run)
    says = (
        f"{loss.origin.name} has the same course in {len(courses)} epochs (correlation "
        f"{likeness:.2f}), with a swing of {swing:.3g}"
    )
    yield Finding(
        claim="The loss repeats the same course in every epoch",
        strength=Strength.STRONG,
        evidence=(cite(loss, says, 0, -1, likeness=likeness, swing=swing), *told),
        suggests={"unshuffled-training-data": Strength.STRONG},
        shows="unshuffled-training-data" if told else None,
        is_symptom=True,
        onset=float(loss.steps[0]),
    )


def _courses(loss: Series, smoothed: int = 3) -> Floats | None:
    """One row per epoch, each drawn to the same number of points and freed of its own level."""
    whole = np.floor(loss.epochs)
    rows = [loss.values[whole == e] for e in np.unique(whole)]
    longest = max(map(len, rows), default=0)
    rows = [r for r in rows if len(r) >= max(POINTS, 0.8 * longest)]
    if len(rows) < EPOCHS:
        return None
    width = min(100, *map(len, rows))
    grid = np.linspace(0.0, 1.0, width)
    drawn = [
        np.interp(grid, np.linspace(0.0, 1.0, len(r)), running_median(r, smoothed))
        for r in rows[1:]
    ]
    # the first epoch learns too much to compare; the level of each is not its course
    return np.array([d - d.mean() for d in drawn])


def _likeness(courses: Floats) -> float:
    spread = courses.std(axis=1)
    if len(courses) < EPOCHS - 1 or not bool(np.all(spread > 0)):
        return 0.0
    together = np.atleast_2d(np.corrcoef(courses))
    return float(np.mean(together[np.triu_indices(len(courses), 1)]))


def _has_shape(loss: Series) -> bool:
    """Tell a course from the noise of single batches, which repeats too if their order is fixed."""
    raw = _courses(loss, smoothed=1)
    if raw is None:
        return False
    mean = raw.mean(axis=0)
    time = np.linspace(-1.0, 1.0, len(mean))
    mean = mean - time * float((time * mean).sum() / (time**2).sum())  # it learns meanwhile
    keeps = float((mean[1:] * mean[:-1]).mean()) / max(float((mean**2).mean()), 1e-300)
    return keeps >= KEEPS


def _only_falls(mean: Floats) -> bool:
    """A running average that starts anew with each epoch falls through it and does nothing else."""
    smooth = running_median(mean, 5)
    rises = float(np.clip(np.diff(smooth), 0, None).sum())
    return rises < 0.35 * float(np.abs(np.diff(smooth)).sum())


def _unshuffled(run: Run) -> tuple[Evidence, ...]:
    setting = run.config.find("shuffle", "shuffle_train", "train_shuffle")
    if setting is not None and str(setting.value).lower() in {"false", "0", "no"}:
        return (cite_setting(setting),)
    return ()


def _run(
    epoch: Floats, epochs: int = 6, *, noise: float = 0.02, shuffle: bool | None = None
) -> Run:
    rng = np.random.default_rng(0)
    rows = [
        epoch * (1.0 - 0.05 * e) + noise * rng.standard_normal(len(epoch)) for e in range(epochs)
    ]
    marks = np.repeat(np.arange(epochs, dtype=float), len(epoch))
    config = {} if shuffle is None else {"data.shuffle": shuffle}
    return make_run({"loss/train": np.concatenate(rows)}, epochs=marks, config=config)


_TEETH = np.concatenate(
    [np.linspace(2.0, 0.4, 20), np.linspace(2.2, 0.5, 20), np.linspace(1.8, 0.3, 20)]
)

FIRES = {
    "sorted by class": _run(_TEETH),
    "sorted, and the config says so": _run(_TEETH, shuffle=False),
}

_MIXED = 0.6 + 0.2 * np.random.default_rng(3).standard_normal(60)

SILENT = {
    "near miss: mixed data in a fixed order": _run(_MIXED),
    "shuffled": _run(flat(60, 0.8, noise=0.0), noise=0.1),
    "near miss: a running mean that restarts each epoch": _run(decay(60, 1.0, 0.6, noise=0.0)),
    "no epochs known": make_run({"loss/train": np.tile(_TEETH, 4)}),
}
