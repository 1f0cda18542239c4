"""What is learnt from data by a scaler or by hand, and which of the data it is learnt from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Result, Value, depends_on, options_of
from traindx.analysis.program.training.data import Role, named_role
from traindx.analysis.program.training.preprocessing import statistics_of_all
from traindx.analysis.program.training.splits import Division, divisions, roles_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what learns numbers from its data; encoders of labels learn nothing from a split
FITTED = frozenset(
    {"StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "QuantileTransformer",
     "PowerTransformer", "PCA", "TruncatedSVD", "SelectKBest", "SimpleImputer", "KNNImputer",
     "IterativeImputer", "TfidfVectorizer", "TargetEncoder", "KBinsDiscretizer"}
)  # fmt: skip
SPLITS = ("train_test_split", "random_split")
DRAWS = frozenset({"matplotlib", "seaborn", "plotly", "plt", "sns", "px", "ax", "axes", "fig"})


@dataclass(frozen=True, eq=False)
class LeakyFit:
    """Where something is learnt from held-out data, and the place that shows that it is."""

    claim: str
    at: ProgramEvent | Value
    other: ProgramEvent | Value
    other_says: str = "the data are split only here"
    says: str = "fitted here"


def leaky_fits(story: Story) -> Iterator[LeakyFit]:
    """Yield what is learnt from data that are held out: before their split, or after it anew."""
    for division in divisions(story):
        learnt = statistics_of_all(division.whole)
        is_held = division.is_for_test or Role.HELD_OUT in _roles(story, division)
        if learnt is not None and learnt.site is not None and is_held:
            name = _name(division.whole)
            claim = f"`{name}` is scaled by statistics of all data before the split"
            says = "computed over training and held-out data"
            yield LeakyFit(claim, learnt, division.place, says=says)
    fits = [e for e in story.events if _is_fit(e)]
    for fit in fits:
        found = _before_split(story, fit) or _again(story, fit, fits)
        if found is not None:
            yield found


def _roles(story: Story, division: Division) -> set[Role]:
    return roles_of(story, division.tail) | roles_of(story, division.head)


def _is_fit(event: ProgramEvent) -> bool:
    made = event.receiver
    is_known = isinstance(made, Result) and made.maker.rsplit(".", 1)[-1] in FITTED
    return is_known and event.name in (".fit", ".fit_transform") and bool(event.args)


def _before_split(story: Story, fit: ProgramEvent) -> LeakyFit | None:
    """The split of what was fitted as a whole."""
    claim = f"`{_name(fit.receiver)}` is fitted on `{_name(fit.args[0])}` before the split"
    for split in story.events:
        if split.order < fit.order or split.name.rsplit(".", 1)[-1] not in SPLITS:
            continue
        if _reaches(story, fit, split):
            return LeakyFit(claim, fit, split)
    learnt = fit.result if fit.name == ".fit_transform" else None
    for division in divisions(story) if learnt is not None else ():
        is_held = Role.HELD_OUT in _roles(story, division)
        if learnt is not None and is_held and depends_on(division.whole, learnt):
            return LeakyFit(claim, fit, division.place)
    return None


def _reaches(story: Story, fit: ProgramEvent, split: ProgramEvent) -> bool:
    """Tell whether what was learnt from all data reaches the parts of a split."""
    scaler, data, learnt = fit.receiver, fit.args[0], fit.result
    is_whole = fit.name == ".fit_transform" and learnt is not None
    if is_whole and any(depends_on(a, learnt) for a in split.args if learnt is not None):
        return True
    if not any(depends_on(a, data) for a in split.args):
        return False
    used = [e for e in story.events if e.order > fit.order and _is_of(e, scaler, learnt)]
    names = {e.name for e in used}
    return ".transform" in names and not names & {".fit", ".fit_transform"}


def _is_of(event: ProgramEvent, scaler: Value | None, fitted: Value | None) -> bool:
    """`scaler = StandardScaler().fit(X)` is the scaler, too."""
    return event.receiver is not None and any(
        o is scaler or o is fitted for o in options_of(event.receiver)
    )


def _again(story: Story, fit: ProgramEvent, fits: list[ProgramEvent]) -> LeakyFit | None:
    """The first fit, on training data, of what is fitted anew on held-out data."""
    if _part_of_split(fit.args[0]) is not Role.HELD_OUT or _is_only_shown(story, fit):
        return None
    for first in fits:
        is_same = first.receiver is fit.receiver and first.order < fit.order
        if is_same and _part_of_split(first.args[0]) is Role.TRAIN:
            claim = f"`{_name(fit.receiver)}` is fitted again, on held-out `{_name(fit.args[0])}`"
            return LeakyFit(claim, fit, first, "fitted on training data here")
    return None


def _part_of_split(value: Value) -> Role:
    """Which part of a split a value is: `train_test_split` gives the training part first."""
    made = value.of if isinstance(value, Part) else None
    is_part = isinstance(made, Result) and made.maker.rsplit(".", 1)[-1] == "train_test_split"
    if is_part and isinstance(value, Part) and isinstance(value.key, int):
        return Role.TRAIN if value.key % 2 == 0 else Role.HELD_OUT
    return named_role(value)


def _is_only_shown(story: Story, fit: ProgramEvent) -> bool:
    """Tell whether a result goes into pictures and nowhere else."""
    uses = [e for e in story.events if e.order > fit.order and fit.result is not None
            and any(depends_on(a, fit.result) for a in (*e.args, *e.kwargs.values()))]  # fmt: skip
    roots = {e.name.split(".")[0] for e in uses if not e.name.startswith((".", "operator"))}
    return bool(uses) and bool(roots) and roots <= DRAWS


def _name(value: Value | None) -> str:
    if value is None:
        return "the data"
    own = value.maker.rsplit(".", 1)[-1] if isinstance(value, Result) else "the data"
    return value.called(own)
