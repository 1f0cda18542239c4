"""A scaler is fitted on data that are held out afterwards."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Result, Value, depends_on, options_of
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.data import Role, named_role
from traindx.analysis.program.training.preprocessing import statistics_of_all
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.splits import divisions, roles_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

# what learns numbers from its data; encoders of labels learn nothing from a split
FITTED = frozenset(
    {"StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "QuantileTransformer",
     "PowerTransformer", "PCA", "TruncatedSVD", "SelectKBest", "SimpleImputer", "KNNImputer",
     "IterativeImputer", "TfidfVectorizer", "TargetEncoder", "KBinsDiscretizer"}
)  # fmt: skip
SPLITS = ("train_test_split", "random_split")
Found = tuple[str, ProgramEvent | Value, str]
DRAWS = frozenset({"matplotlib", "seaborn", "plotly", "plt", "sns", "px", "ax", "axes", "fig"})


@detector(needs=("source",), suggests=("data-leakage",))
def check(run: Run) -> Findings:
    """A scaler, selector or decomposition is fitted before the data are split, or on test data.

    ## What it detects
    scikit-learn's `fit_transform` (or `fit`) on data that are split afterwards, where what was
    learnt reaches the parts of the split; the same by hand, `(X - X.mean(0)) / X.std(0)`; and a
    second `fit_transform` of the same object on held-out data.

    ## Why it matters
    Statistics of the held-out data reach training, so the validation result is too good; a scaler
    fitted anew on the test data puts them on another scale than the model was trained on.

    ## What to do
    Split first, `fit_transform` on the training part, `transform` on the others.

    ## When it is wrong
    Encoders of labels learn nothing from the split and are left alone, and so is a fit to look at
    the data, whose result never meets what is split.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        yield from _by_hand(story, seen)
        fits = [e for e in story.events if _is_fit(e)]
        for fit in fits:
            found = _before_split(story, fit) or _again(story, fit, fits)
            if found is not None and fit.node not in seen:
                seen.add(fit.node)
                claim, other, says = found
                yield finding(claim, "data-leakage", fit, cite(fit, "fitted here"),
                              cite(other, says), is_symptom=True)  # fmt: skip


def _by_hand(story: Story, seen: set[object]) -> Findings:
    """Data that are scaled by a statistic of all of them, and divided only then."""
    for division in divisions(story):
        learnt = statistics_of_all(division.whole)
        roles = roles_of(story, division.tail) | roles_of(story, division.head)
        is_held = division.is_for_test or Role.HELD_OUT in roles
        if learnt is None or learnt.site is None or not is_held or learnt.site.node in seen:
            continue
        seen.add(learnt.site.node)
        yield finding(
            f"`{_name(division.whole)}` is scaled by statistics of all data before the split",
            "data-leakage",
            learnt,
            cite(learnt, "computed over training and held-out data"),
            cite(division.place, "the data are split only here"),
            is_symptom=True,
        )


def _is_fit(event: ProgramEvent) -> bool:
    made = event.receiver
    is_known = isinstance(made, Result) and made.maker.rsplit(".", 1)[-1] in FITTED
    return is_known and event.name in (".fit", ".fit_transform") and bool(event.args)


def _before_split(story: Story, fit: ProgramEvent) -> Found | None:
    """The split of what was fitted as a whole."""
    claim = f"`{_name(fit.receiver)}` is fitted on `{_name(fit.args[0])}` before the split"
    for split in story.events:
        if split.order < fit.order or split.name.rsplit(".", 1)[-1] not in SPLITS:
            continue
        if _reaches(story, fit, split):
            return claim, split, "the data are split only here"
    learnt = fit.result if fit.name == ".fit_transform" else None
    for division in divisions(story) if learnt is not None else ():
        roles = roles_of(story, division.tail) | roles_of(story, division.head)
        if learnt is not None and Role.HELD_OUT in roles and depends_on(division.whole, learnt):
            return claim, division.place, "the data are split only here"
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


def _again(
    story: Story, fit: ProgramEvent, fits: list[ProgramEvent]
) -> tuple[str, ProgramEvent, str] | None:
    """The first fit, on training data, of what is fitted anew on held-out data."""
    if _part_of_split(fit.args[0]) is not Role.HELD_OUT or _is_only_shown(story, fit):
        return None
    for first in fits:
        is_same = first.receiver is fit.receiver and first.order < fit.order
        if is_same and _part_of_split(first.args[0]) is Role.TRAIN:
            claim = f"`{_name(fit.receiver)}` is fitted again, on held-out `{_name(fit.args[0])}`"
            return claim, first, "fitted on training data here"
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


_PROGRAM = """
import torch
from torch.utils.data import TensorDataset, random_split
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.decomposition import PCA

scaler = {made}
{before}
X_train, X_test, y_train, y_test = train_test_split(X, y)
{after}
"""


def _program(before: str = "", after: str = "", made: str = "StandardScaler()") -> Run:
    text = _PROGRAM.format(before=before, after=after, made=made)
    return make_run(sources={"train.py": text})


_RIGHT = "X_train = scaler.fit_transform(X_train)\nX_test = scaler.transform(X_test)"

FIRES = {
    "scaled by hand": _program("X = (X - X.mean(axis=0)) / X.std(axis=0)"),
    "by statistics under names": _program("low, high = X.min(0), X.max(0)\nX = (X - low) / high"),
    "fitted on all data": _program("X = scaler.fit_transform(X)"),
    "fitted on all data, and made a tensor": _program("X = torch.tensor(scaler.fit_transform(X))"),
    "fitted on all data, used on the parts": _program(
        "scaler.fit(X)", "X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)"
    ),
    "fitted where it is made, used on the parts": _program(
        "scaler = StandardScaler().fit(X)", "X_train = scaler.transform(X_train)"
    ),
    "joined with what was learnt from all data": _program(
        "more = scaler.fit_transform(X)\nX = np.hstack([X, more])", made="PCA(8)"
    ),
    "decomposed, then cut": _program(
        after="Z = scaler.fit_transform(Z)\ntrain_z, test_z = Z[:800], Z[800:]", made="PCA(8)"
    ),
    "scaled by hand, in a dataset": _program(
        after="Z = (Z - Z.mean(0)) / Z.std(0)\n"
        "train_set, val_set = random_split(TensorDataset(Z, y), [0.8, 0.2])"
    ),
    "fitted again on the test data": _program(
        after="X_train = scaler.fit_transform(X_train)\nX_test = scaler.fit_transform(X_test)"
    ),
}

SILENT = {
    "near miss: cut, then fitted on the first part": _program(
        after="train_z, test_z = Z[:800], Z[800:]\n"
        "train_z, test_z = scaler.fit_transform(train_z), scaler.transform(test_z)"
    ),
    "near miss: by a fixed number, in a dataset": _program(
        after="train_set, val_set = random_split(TensorDataset(Z / 255.0, y), [0.8, 0.2])"
    ),
    "near miss: each example by its own": _program("X = X - X.mean(axis=1, keepdims=True)"),
    "near miss: by a fixed number": _program("X = X / 255.0"),
    "near miss: by hand, from the training part": _program(
        after="mean = X_train.mean(0)\nX_train, X_test = X_train - mean, X_test - mean"
    ),
    "near miss: fitted to look at the data": _program(
        "points = scaler.fit_transform(X)\nplt.scatter(points[:, 0], points[:, 1])",
        made="PCA(2)",
    ),
    "near miss: fitted to look, and again on the training part": _program(
        "scaler.fit(X)\nprint(scaler.mean_)", _RIGHT
    ),
    "near miss: test data that are only shown": _program(
        after="a = scaler.fit_transform(X_train)\nb = scaler.fit_transform(X_test)\n"
        "plt.plot(b[:, 0])",
    ),
    "split first": _program(after=_RIGHT),
    "near miss: labels are encoded": _program("y = scaler.fit_transform(y)", made="LabelEncoder()"),
    "near miss: other data": _program("other = scaler.fit_transform(Z)", _RIGHT),
}
