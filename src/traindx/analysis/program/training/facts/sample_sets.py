"""Data sets of scikit-learn: how many rows and columns they have, and how many classes."""

from __future__ import annotations

from traindx.analysis.program.execution.values import Result, Value, constant

SETS = {
    "load_iris": (150, 4), "load_wine": (178, 13), "load_breast_cancer": (569, 30),
    "load_digits": (1797, 64), "load_diabetes": (442, 10), "fetch_california_housing": (20640, 8),
}  # fmt: skip
SET_CLASSES = {"load_iris": 3, "load_wine": 3, "load_breast_cancer": 2, "load_digits": 10}
# made sets: columns where they are fixed, else the option and its default
MADE = {
    "make_moons": ("", 2), "make_circles": ("", 2), "make_swiss_roll": ("", 3),
    "make_s_curve": ("", 3), "make_classification": ("n_features", 20),
    "make_blobs": ("n_features", 2), "make_regression": ("n_features", 100),
}  # fmt: skip
MADE_CLASSES = {"make_moons": ("", 2), "make_circles": ("", 2), "make_blobs": ("centers", 3),
                "make_classification": ("n_classes", 2)}  # fmt: skip
SCALERS = frozenset({"StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "Normalizer",
                     "QuantileTransformer", "PowerTransformer"})  # fmt: skip


def is_scaler(value: Value | None) -> bool:
    """Tell whether a value is a preprocessor that keeps rows and columns."""
    while isinstance(value, Result) and value.maker == ".fit":
        value = value.receiver
    return (
        isinstance(value, Result)
        and value.maker.startswith("sklearn.preprocessing.")
        and value.maker.rsplit(".", 1)[-1] in SCALERS
    )


def sizes_of(owner: Value, key: object) -> tuple[int, ...] | None:
    """Return the shape of an attribute of a loaded set; None where it is not known."""
    name = set_name(owner)
    if name not in SETS:
        return None
    if key == "data":
        return SETS[name]
    if key == "images" and name == "load_digits":
        return (1797, 8, 8)
    return SETS[name][:1] if key == "target" else None


def pair_sizes(owner: Value, key: int) -> tuple[int, ...] | None:
    """Return the shape of the inputs or labels that a set is handed out as a pair of."""
    name = set_name(owner)
    if not isinstance(owner, Result) or key not in (0, 1):
        return None
    if name in SETS and constant(owner.kwargs.get("return_X_y")) is True:
        return SETS[name] if key == 0 else SETS[name][:1]
    if name not in MADE:
        return None
    option, columns = MADE[name]
    given = owner.args[0] if owner.args else owner.kwargs.get("n_samples")
    rows = 100 if given is None else constant(given)
    width = _option(owner, option, 1, columns)
    is_wide = name == "make_regression" and "n_targets" in owner.kwargs
    if not isinstance(rows, int) or (key == 1 and is_wide):
        return None
    if key == 1:
        return (rows,)
    return None if width is None else (rows, width)


def classes_of(owner: Value) -> int | None:
    """Return how many classes the labels of a set have; None where it has none, or not known."""
    name = set_name(owner)
    if name in SET_CLASSES:
        return SET_CLASSES[name]
    if name not in MADE_CLASSES or not isinstance(owner, Result):
        return None
    option, default = MADE_CLASSES[name]
    return _option(owner, option, None, default)


def _option(owner: Result, name: str, position: int | None, default: int) -> int | None:
    given = owner.kwargs.get(name) if name else None
    if given is None and name and position is not None and len(owner.args) > position:
        given = owner.args[position]
    found = default if given is None else constant(given)
    return found if isinstance(found, int) else None


def set_name(owner: Value) -> str:
    """Return the name of the function of scikit-learn that made a set; empty where none did."""
    is_set = isinstance(owner, Result) and owner.maker.startswith("sklearn.datasets.")
    return owner.maker.rsplit(".", 1)[-1] if isinstance(owner, Result) and is_set else ""
