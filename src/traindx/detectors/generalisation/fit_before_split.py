from traindx.analysis.program.training.claims import cite, each_place, finding, site_of
from traindx.analysis.program.training.fitting import leaky_fits
from traindx.examples import template
from traindx.registry import Findings, Run, detector


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
    for leak in each_place(run, leaky_fits, lambda found: site_of(found.at).node):
        evidence = cite(leak.at, leak.says), cite(leak.other, leak.other_says)
        yield finding(leak.claim, *evidence, at=leak.at)


_PROGRAM = """
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.decomposition import PCA

scaler = {made}
{before}
X_train, X_test, y_train, y_test = train_test_split(X, y)
{after}
"""
_program = template(_PROGRAM, before="", after="", made="StandardScaler()")
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
