from traindx.analysis.program.training.claims import finding, program_of, source_text
from traindx.analysis.program.training.splits import repeated_before
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("data-leakage",))
def check(run: Run) -> Findings:
    """Rare examples are drawn again with replacement, and the result is split into parts.

    ## What it detects
    Data that are indexed by a draw with replacement (`np.random.choice(…)`, `torch.randint`), that
    some of themselves are added to (`np.concatenate([X, X[rare]])`, `np.repeat`), or that come out
    of `fit_resample` or `resample`, and that are split into training and held-out data only then.

    ## Why it matters
    Copies of one example, or new ones made from it, are in both parts: the model is tested on what
    it has learnt by heart, and the metric is far too good.

    ## What to do
    Split first and resample the training part alone.

    ## When it is wrong
    Draws without replacement repeat nothing and are left alone; so are parts that no name or loader
    says to be held out.
    """
    for story in program_of(run).stories:
        repeated = repeated_before(story)
        if repeated is not None:
            division, found = repeated
            name = division.whole.called("the data")
            yield finding(
                f"Examples are repeated before `{name}` is split: copies are in both parts",
                (found, f"`{source_text(found)}` draws examples again"),
                (division.place, "the data are split only here"),
            )
            return


_PROGRAM = """
import numpy as np
from sklearn.model_selection import train_test_split

X, y = load()
{before}
{split}
fit(X_train, y_train)
score(X_test, y_test)
"""
_BY_LIBRARY = "X_train, X_test, y_train, y_test = train_test_split(X, y)"
_BY_HAND = """n = int(0.8 * len(X))
X_train, y_train = X[:n], y[:n]
X_test, y_test = X[n:], y[n:]"""
_DRAWN = """rare = np.where(y == 1)[0]
again = np.random.choice(rare, size=900{options})
index = np.concatenate([np.where(y == 0)[0], again])
X, y = X[index], y[index]"""

_program = template(_PROGRAM, "before", split=_BY_LIBRARY)

FIRES = {
    "in another language": _program(
        _DRAWN.format(options=""), "X_ent, X_pru, y_ent, y_pru = train_test_split(X, y)"
    ),
    "drawn with replacement": _program(_DRAWN.format(options="")),
    "drawn with replacement, cut by hand": _program(_DRAWN.format(options=""), _BY_HAND),
    "rare examples are added again": _program(
        "X = np.concatenate([X, X[y == 1]])\ny = np.concatenate([y, y[y == 1]])"
    ),
    "every example several times": _program("X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)"),
    "a table, drawn again": _program("X = X.sample(len(X) * 2, replace=True)"),
    "a library's sampler": _program("X, y = SMOTE().fit_resample(X, y)"),
}

SILENT = {
    "near miss: other examples are added": _program("X = np.concatenate([X, Z[y == 1]])"),
    "near miss: more features": _program("X = np.concatenate([X, X[:, :3] ** 2], axis=1)"),
    "split first": _program("pass"),
    "near miss: without replacement": _program(_DRAWN.format(options=", replace=False")),
    "near miss: the training part alone": _program(
        "pass", _BY_LIBRARY + "\nX_train, y_train = SMOTE().fit_resample(X_train, y_train)"
    ),
}
