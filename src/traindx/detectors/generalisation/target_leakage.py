"""The target is part of the features."""

from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    depends_on,
    origins,
)
from traindx.analysis.program.training.claims import cite, finding, source_text, statement_text
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import data_chain
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

PAIRS = ("train_test_split", "TensorDataset")  # features first, targets second
WIDE = frozenset({"hstack", "column_stack"})
STACKS = frozenset({"concatenate", "cat", "concat", "append"}) | WIDE
VIEWS = ("values", "array", "T")  # attributes that are the table itself
TAKES_OUT = (".drop", ".pop", "operator.delitem")
TAKES_COLUMNS = frozenset({"delete", "drop", "index_select", "hsplit", "narrow", "take"})
STATISTICS = frozenset({"mean", "sum", "median", "average", "nanmean"})


@dataclass(frozen=True, eq=False)
class _Pair:
    """Features and targets that one call takes side by side, row by row."""

    story: Story
    event: ProgramEvent

    @property
    def features(self) -> Value:
        return self.event.args[0]

    @property
    def targets(self) -> Value:
        return self.event.args[1]


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
    for story in program_of(run).stories:
        for event in story.events:
            is_pair = event.name.rsplit(".", 1)[-1] in PAIRS and len(event.args) == 2
            if not is_pair or event.is_own:
                continue
            pair = _Pair(story, event)
            found: tuple[Value | ProgramEvent, str] | None = _whole_table(pair) or _joined(pair)
            if found is not None and _is_cut_later(pair):
                continue
            found = found or _overwritten(pair) or _encoded(pair)
            if found is not None and found[0].site is not None:
                yield _finding(pair, *found)
                return


def _finding(pair: _Pair, at: Value | ProgramEvent, says: str) -> Finding:
    return finding(
        f"The features hold the target: {says}",
        "data-leakage",
        at,
        cite(at, says),
        cite(pair.event, "features and targets side by side"),
        is_symptom=True,
    )


def _bare(value: Value) -> Value:
    """What a value is, without changes of its type and shape or a new axis."""
    while True:
        inner = whole_tensor(value)
        if isinstance(inner, Part) and inner.key in VIEWS:
            inner = inner.of
        operation = operation_of(inner)
        if operation is not None and operation.name in ("to_frame", "copy") and operation.operands:
            inner = operation.operands[0]
        if isinstance(inner, Result) and inner.maker == "operator.getitem":
            parts = inner.args[1].inputs if isinstance(inner.args[1], Items) else ()
            if any(isinstance(p, Known) and p.value is None for p in parts):
                inner = inner.args[0]
        if inner is value:
            return value
        value = inner


def _whole_table(pair: _Pair) -> tuple[Value, str] | None:
    column, table = _bare(pair.targets), _bare(pair.features)
    if not isinstance(column, Part) or not isinstance(column.key, str) or column.of is not table:
        return None
    if table is pair.features or column.site is None:
        return None  # a table that is split as a whole may have its columns picked later
    for event in pair.story.events:
        owner = event.receiver or (event.args[0] if event.args else None)
        if event.name in TAKES_OUT and owner is table:
            return None
    name = table.called("the table")
    return column, f"`{source_text(column)}` is predicted from all of `{name}`"


def _joined(pair: _Pair) -> tuple[Value, str] | None:
    """The features are a join, along their columns, of which the targets are a part."""
    target, joined = _bare(pair.targets), whole_tensor(pair.features)
    operation = operation_of(joined)
    if operation is None or not operation.operands:
        return None
    last = operation.name.rsplit(".", 1)[-1]
    axis = operation.settings.get("axis") or operation.settings.get("dim")
    if axis is None and len(operation.operands) > 1:
        axis = operation.operands[1]
    is_wide = last in WIDE or constant(axis) in (1, -1)
    parts = operation.operands[0].members if isinstance(operation.operands[0], Items) else []
    if last in STACKS and is_wide and len(parts) > 1 and any(_bare(p) is target for p in parts):
        return joined, f"`{source_text(joined)}` joins the targets with the features"
    return None


def _is_cut_later(pair: _Pair) -> bool:
    """Tell whether columns are picked or left out after features and targets were set side by side.

    That may be in a loop over batches, under any name; the targets have no columns to pick.
    """
    for event in pair.story.events:
        if event.order <= pair.event.order or event.act is EventForm.STORE:
            continue
        if event.name.rsplit(".", 1)[-1] in TAKES_COLUMNS:
            return True
        if event.name == "operator.getitem" and _is_of_columns(event.args[1]):
            return True
    return False


def _is_of_columns(key: Value) -> bool:
    """Tell whether a key picks several columns: `[:, :-1]`, `[:, columns]`, `[["a", "b"]]`."""
    if not isinstance(key, Items):
        return False
    if key.kind == "list":
        return True
    last = key.members[-1] if key.fields else None
    is_new = isinstance(last, Known) and last.value is None
    return len(key.fields) > 1 and not is_new and not isinstance(last, Known)


def _overwritten(pair: _Pair) -> tuple[ProgramEvent, str] | None:
    """A part of the split features gets the values of the split targets."""
    split = pair.event.result
    for event in pair.story.events:
        if event.act is not EventForm.STORE or event.name != "[]" or event.order < pair.event.order:
            continue
        written, given = event.receiver, _bare(event.args[0])
        if not (isinstance(written, Part) and isinstance(given, Part)):
            continue
        if (
            written.of is split
            and given.of is split
            and written.key in (0, 1)
            and given.key in (2, 3)
        ):
            return event, f"`{statement_text(event)}` after the split"
    return None


def _encoded(pair: _Pair) -> tuple[Value, str] | None:
    """Features that hold means of the targets of all rows."""
    if not pair.event.name.endswith("train_test_split"):
        return None
    target = pair.targets
    for value in origins(pair.features):
        operation = operation_of(value)
        if operation is None or operation.name not in STATISTICS or not operation.operands:
            continue
        chain = list(data_chain(pair.story, operation.operands[0]))
        if any(v is target for v in chain) and not depends_on(target, value) and value.site:
            return value, f"`{source_text(value)}` of the targets is computed before the split"
    return None


_PROGRAM = """
import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split

table = pd.read_csv("houses.csv")
{made}
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2)
{after}
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X_train, y_train))
"""


def _program(made: str, after: str = "pass") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(made=made, after=after)})


_APART = 'y = table["price"].values\nX = table.drop(columns="price").values'

FIRES = {
    "the whole table": _program('y = table["price"].values\nX = table.values'),
    "joined": _program("X = np.column_stack([a, b])\ny = c\nX = np.hstack([X, y.reshape(-1, 1)])"),
    "overwritten after the split": _program(_APART, "X_test[:, 0] = y_test"),
}

SILENT = {
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
