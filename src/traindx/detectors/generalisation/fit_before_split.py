"""A scaler is fitted on data that are held out afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import phase_of
from traindx.source.module import Module, key_of
from traindx.source.project import Project

FITTED = frozenset(
    {"StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "QuantileTransformer",
     "PowerTransformer", "PCA", "TruncatedSVD", "SelectKBest", "SimpleImputer", "KNNImputer",
     "IterativeImputer", "TfidfVectorizer"}
)  # fmt: skip


@detector(needs=("source",), suggests=("data-leakage",))
def check(run: Run) -> Iterator[Finding]:
    """A scaler, selector or decomposition is fitted before the data are split, or on test data.

    ## What it detects
    scikit-learn's `fit_transform` (or `fit`) on data that `train_test_split` divides later in the
    same scope, and a second `fit_transform` of the same object on data named for testing.

    ## Why it matters
    Statistics of the held-out data reach training, so the validation result is too good; a scaler
    fitted anew on the test data puts them on another scale than the model was trained on.

    ## What to do
    Split first, `fit_transform` on the training part, `transform` on the others.

    ## When it is wrong
    Encoders of labels learn nothing from the split and are left alone.
    """
    project = project_of(run)
    for module in project.training_modules:
        fits = list(_fits(project, module))
        for call, scaler, data, result in fits:
            split = _split_after(module, call, {data, result} - {""})
            if split is not None:
                claim = f"`{scaler}` is fitted on `{data}` before the split"
                yield _finding(module, call, claim, (split, "the data are split only here"))
            elif phase_of(data) in ("val", "test"):
                first = _fitted_on_training(fits, scaler)
                if first is not None:
                    claim = f"`{scaler}` is fitted again, on held-out `{data}`"
                    yield _finding(module, call, claim, (first, "fitted on training data here"))


def _finding(module: Module, call: ast.Call, claim: str, also: tuple[ast.AST, str]) -> Finding:
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(module.cite(call, "fitted here"), module.cite(*also)),
        shows="data-leakage",
        is_symptom=True,
        location=module.location(call),
    )


def _fits(project: Project, module: Module) -> Iterator[tuple[ast.Call, str, str, str]]:
    """Each fit with the name of its scaler, of its data, and of what it is kept under."""
    if "sklearn" not in module.roots:
        return
    for call, _ in module.calls():
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in ("fit_transform", "fit"):
            continue
        made = func.value if isinstance(func.value, ast.Call) else None
        scaler = key_of(func.value) or ""
        if made is None and scaler:
            bound = project.lookup(module, call, scaler)
            made = bound[0] if len(bound) == 1 and isinstance(bound[0], ast.Call) else None
        name = (module.qualified(made.func) or "").rsplit(".", 1)[-1] if made is not None else ""
        data = key_of(call.args[0]) if call.args else None
        if name in FITTED and data and not isinstance(call.args[0], ast.Subscript):
            yield call, scaler or name, data, _result(module, call)


def _result(module: Module, call: ast.Call) -> str:
    above = module.parents.get(call)
    return (key_of(above.targets[0]) or "") if isinstance(above, ast.Assign) else ""


def _split_after(module: Module, call: ast.Call, names: set[str]) -> ast.Call | None:
    scope = module.function_of(call)
    for other, name in module.calls():
        if not name.endswith("train_test_split") or other.lineno <= call.lineno:
            continue
        if module.function_of(other) is scope and any(key_of(a) in names for a in other.args):
            return other
    return None


def _fitted_on_training(fits: list[tuple[ast.Call, str, str, str]], scaler: str) -> ast.Call | None:
    return next((c for c, s, d, _ in fits if s == scaler and phase_of(d) == "train"), None)


_PROGRAM = """
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler

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
    "fitted on all data": _program("X = scaler.fit_transform(X)"),
    "fitted again on the test data": _program(
        after="X_train = scaler.fit_transform(X_train)\nX_test = scaler.fit_transform(X_test)"
    ),
}

SILENT = {
    "split first": _program(after=_RIGHT),
    "near miss: labels are encoded": _program("y = scaler.fit_transform(y)", made="LabelEncoder()"),
    "near miss: other data": _program("other = scaler.fit_transform(Z)", _RIGHT),
}
