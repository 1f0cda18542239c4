from traindx.analysis.program.training.claims import finding, program_of, source_text
from traindx.analysis.program.training.encoded_targets import encoded_targets
from traindx.analysis.program.training.leaked_targets import leaked_targets
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("data-leakage",))
def check(run: Run) -> Findings:
    """The features that a model is given hold the values that it has to predict.

    ## What it detects
    Features and targets that `train_test_split` or `TensorDataset` takes side by side, where the
    features are a whole table of which the targets are a column that was never dropped, were joined
    with the targets, or hold means of the targets over rows that are held out later (a target
    encoding fitted before the split); and a column of features that is overwritten with the targets
    after the split.

    ## Why it matters
    The model copies its answer. The result is perfect, or, where only one of the splits has it,
    absurd; on new data neither holds.

    ## What to do
    `X = table.drop(columns="price")`, and let nothing that is made from the target into it; fit a
    target encoding on the training part.

    ## When it is wrong
    Forecasts use earlier values of what they predict: shifted columns and windows are other values,
    and left alone. So are features from which columns are taken after the split.
    """
    for leak in (x for story in program_of(run).stories for x in leaked_targets(story)):
        yield finding(
            f"The features hold the target: {leak.says}",
            (leak.at, leak.says),
            (leak.pair, "features and targets side by side"),
        )
        return
    for encoded in (x for story in program_of(run).stories for x in encoded_targets(story)):
        yield finding(
            f"The features hold means of all targets: `{source_text(encoded.statistic)}`",
            (encoded.statistic, "computed of rows that are held out later, too"),
            (encoded.pair, "some of the rows, with features that have it"),
        )
        return


_program = template("""
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

table = pd.read_csv("houses.csv")
{made:}
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2)
{after:pass}
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X_train, y_train))
""")
_APART = 'y = table["price"].values\nX = table.drop(columns="price").values'
_SOME = 'y = table["price"].values\nX = table[["area", "mean"]].values'

FIRES = {
    "the whole table": _program('y = table["price"].values\nX = table.values'),
    "joined": _program("X = np.column_stack([a, b])\ny = c\nX = np.hstack([X, y.reshape(-1, 1)])"),
    "overwritten after the split": _program(_APART, "X_test[:, 0] = y_test"),
    "means by group, of all rows": _program(
        'table["mean"] = table.groupby("city")["price"].transform("mean")\n' + _SOME
    ),
    "means by group, looked up": _program(
        'means = table.groupby("city")["price"].mean()\n'
        'table["mean"] = table["city"].map(means)\n' + _SOME
    ),
}

SILENT = {
    "near miss: counts by group": _program(
        'table["mean"] = table.groupby("city")["area"].transform("mean")\n' + _SOME
    ),
    "dropped": _program(_APART),
    "near miss: taken out of the table": _program(
        'y = table.pop("price").values\nX = table.values'
    ),
    "near miss: the last column is left out after the split": _program(
        'y = table["price"].values\nX = table.values', "X_train = X_train[:, :-1]"
    ),
    "near miss: deleted after the split": _program(
        'y = table["price"].values\nX = table.values', "X_train = np.delete(X_train, 3, axis=1)"
    ),
    "near miss: left out in the loop": _program(
        'y = table["price"].values\nX = table.values',
        "for x, y in batches:\n    model(x[:, columns])",
    ),
    "near miss: deleted": _program('y = table["price"]\ndel table["price"]\nX = table.values'),
    "near miss: earlier values": _program('y = table["price"].shift(-1)\nX = table.values'),
    "near miss: a table that is split as a whole": _program('y = table["price"]\nX = table'),
    "near miss: some columns": _program('y = table["price"]\nX = table[["area", "rooms"]]'),
    "near miss: made data that depend on their class": _program(
        "y = np.arange(90) % 3\nX = np.random.randn(90, 4)\nX[:, 0] = y"
    ),
    "near miss: a mask of the targets": _program(_APART, "X_test[y_test > 5] = 0.0"),
}
