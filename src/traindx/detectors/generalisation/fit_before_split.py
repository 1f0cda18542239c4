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

DRAWS = frozenset({"matplotlib", "seaborn", "plotly", "plt", "sns", "px", "ax", "axes", "fig"})


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
    Encoders of labels learn nothing from the split and are left alone, and so is a fit to look at
    the data, whose result never meets what is split.
    """
    project = project_of(run)
    for module in project.training_modules:
        fits = list(_fits(project, module))
        for call, scaler, data, result in fits:
            split = _split_after(module, call, {data, result} - {""})
            if split is not None and _reaches(module, (call, scaler, data, result), split):
                claim = f"`{scaler}` is fitted on `{data}` before the split"
                yield _finding(module, call, claim, (split, "the data are split only here"))
            elif phase_of(data) in ("val", "test") and not _is_only_shown(module, call, result):
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
    statement = module.statement_of(call)
    return (key_of(statement.targets[0]) or "") if isinstance(statement, ast.Assign) else ""


def _reaches(module: Module, fit: tuple[ast.Call, str, str, str], split: ast.Call) -> bool:
    """Tell whether what was learnt from all data reaches the parts of a split."""
    call, scaler, _, result = fit
    scope: ast.AST = module.function_of(call) or module.tree
    made = {result} - {""}
    for node in sorted(_assigned(scope), key=lambda n: n.lineno):
        is_between = call.lineno < node.lineno < split.lineno
        if is_between and {key_of(n) for n in ast.walk(node.value)} & made:
            made |= {k for t in node.targets for n in ast.walk(t) if (k := key_of(n))}
    if any(key_of(a) in made for a in split.args):
        return True
    later = [c.func for c, _ in module.calls(scope) if c.lineno > call.lineno]
    owners = {scaler, result}  # `scaler = StandardScaler().fit(X)` names it by its result
    methods = {f.attr for f in later if isinstance(f, ast.Attribute) and key_of(f.value) in owners}
    return "transform" in methods and not methods & {"fit", "fit_transform"}


def _assigned(scope: ast.AST) -> list[ast.Assign]:
    return [n for n in ast.walk(scope) if isinstance(n, ast.Assign)]


def _is_only_shown(module: Module, call: ast.Call, result: str) -> bool:
    """Tell whether a result goes into pictures and nowhere else."""
    scope: ast.AST = module.function_of(call) or module.tree
    named = (n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == result)
    uses = (n for n in named if isinstance(n.ctx, ast.Load))
    drawn = []
    for use in uses:
        calls = (n for n in module.enclosing(use) if isinstance(n, ast.Call))
        roots = {(module.qualified(n.func) or "").split(".")[0] for n in calls}
        drawn.append(bool(roots & DRAWS))
    return bool(drawn) and all(drawn)


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
    "fitted again on the test data": _program(
        after="X_train = scaler.fit_transform(X_train)\nX_test = scaler.fit_transform(X_test)"
    ),
}

SILENT = {
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
