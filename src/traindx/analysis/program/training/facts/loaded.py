"""What is read from files: the shapes of tables of pandas, and of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
)
from traindx.analysis.program.shapes.sizes import Dim, is_dim
from traindx.analysis.program.shapes.values import UNKNOWN, Shape, ShapedTensor, SizesOf

if TYPE_CHECKING:
    from traindx.analysis.program.training.facts.tensor_shapes import TensorShapes

TABLES = ("pandas.read_csv", "pandas.read_parquet", "pandas.read_excel", "pandas.read_table",
          "pandas.read_feather", "pandas.DataFrame", "pandas.read_pickle")  # fmt: skip
# methods after which rows, columns or neither are others; the dimensions stay
OTHER_ROWS = frozenset({"dropna", "sample", "query", "drop_duplicates", "head", "tail"})
OTHER_COLUMNS = frozenset({"drop", "select_dtypes", "join", "merge", "assign"})
ALIKE = frozenset({"fillna", "astype", "copy", "reset_index", "sort_values", "clip", "abs",
                   "sort_index", "ffill", "bfill", "rename", "round", "set_index"})  # fmt: skip
ARRAYS = frozenset({"to_numpy", "numpy.array", "numpy.asarray", "numpy.ascontiguousarray"})
SIGNS = frozenset({"add", "sub", "mul", "div", "pow", "mod"})
# channels of an image by its mode; 0 has no dimension for them
MODES = {"RGB": 3, "L": 0, "RGBA": 4, "CMYK": 4, "P": 0, "HSV": 3}  # all of bytes
CV_CHANGES = frozenset({"cv2.cvtColor", "cv2.resize", "cv2.flip", "cv2.GaussianBlur"})
CV_READ = {None: 3, "cv2.IMREAD_COLOR": 3, "cv2.IMREAD_GRAYSCALE": 0}


@dataclass(frozen=True, slots=True, eq=False)
class TableShape:
    """A table with rows and columns, or, without a width, one column of it."""

    rows: Dim
    width: Dim | None

    @property
    def tensor(self) -> ShapedTensor:
        return ShapedTensor(Shape((self.rows,) if self.width is None else (self.rows, self.width)))


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """An image that is no array yet: its height, width and channels."""

    height: Dim
    width: Dim
    channels: int | None

    @property
    def tensor(self) -> ShapedTensor:
        if self.channels is None:
            return ShapedTensor()
        deep = (self.channels,) if self.channels else ()
        return ShapedTensor(Shape((self.height, self.width, *deep)))


def loaded(value: Result | Part, shapes: TensorShapes) -> object | None:
    """Return a table, an image, or the array that is made of one; None where it is neither."""
    if isinstance(value, Part):
        owner = shapes.of(value.of)
        return _attribute(owner, value.key, shapes) if isinstance(owner, TableShape) else None
    if value.maker in TABLES:
        return TableShape(shapes.symbols.new(), shapes.symbols.new())
    if value.maker == "PIL.Image.open":
        return Picture(shapes.symbols.new(), shapes.symbols.new(), None)
    if value.maker == "cv2.imread":
        return _read_by_cv(value, shapes)
    if value.maker in CV_CHANGES:
        return _changed_by_cv(value, shapes)
    first = value.receiver if value.receiver is not None else next(iter(value.args), None)
    owner = shapes.of(first)
    if value.maker in ("operator.getitem", "()") or value.maker.startswith("operator."):
        return _of_operator(value, shapes)
    name = value.maker.removeprefix(".")
    if name in ARRAYS and isinstance(owner, (TableShape, Picture)):
        return owner.tensor
    if isinstance(owner, Picture):
        return _picture(value, name, owner, shapes)
    return _method(value, name, owner, shapes) if isinstance(owner, TableShape) else None


def is_of_bytes(value: Value | None, shapes: TensorShapes) -> bool:
    """Tell whether a value is an image whose pixels are whole numbers from 0 to 255."""
    found = shapes.of(value)
    return isinstance(found, Picture) and found.channels is not None


def _read_by_cv(value: Result, shapes: TensorShapes) -> object:
    flag = value.args[1] if len(value.args) > 1 else None
    name = None if flag is None else getattr(flag, "name", "?")
    is_gray = isinstance(flag, Known) and flag.value == 0
    channels = 0 if is_gray else CV_READ.get(name)
    return Picture(shapes.symbols.new(), shapes.symbols.new(), channels).tensor


def _changed_by_cv(value: Result, shapes: TensorShapes) -> object:
    """Return an image that OpenCV gave another size, or other colours."""
    found = shapes.of(value.args[0]) if value.args else UNKNOWN
    if not isinstance(found, ShapedTensor) or found.shape.is_open:
        return ShapedTensor()
    if value.maker == "cv2.cvtColor":
        kind = getattr(value.args[1], "name", "") if len(value.args) > 1 else ""
        is_known = kind.startswith("cv2.COLOR_")
        is_gray, is_plain = kind.endswith("2GRAY"), kind.endswith(("2RGB", "2BGR", "2HSV", "2LAB"))
        if not is_known or not (is_gray or is_plain):
            return ShapedTensor()
        return ShapedTensor(Shape((*found.shape.sizes[:2], *(() if is_gray else (3,)))))
    if value.maker != "cv2.resize":
        return found
    size = shapes.of(value.args[1]) if len(value.args) > 1 else UNKNOWN
    is_known = isinstance(size, tuple) and len(size) == 2 and all(is_dim(s) for s in size)
    if not isinstance(size, tuple) or not is_known:
        return ShapedTensor()
    return ShapedTensor(Shape((size[1], size[0], *found.shape.sizes[2:])))


def _attribute(frame: TableShape, key: object, shapes: TensorShapes) -> object:
    if key == "values":
        return frame.tensor
    if key == "shape":
        return SizesOf(frame.tensor)
    if key == "index":
        return TableShape(frame.rows, None)
    if key in ("iloc", "loc", "str", "dt", "cat", "T", "columns", "dtypes", "at", "iat"):
        return None
    is_column = isinstance(key, str) and frame.width is not None
    return TableShape(frame.rows, None) if is_column else None


def _method(value: Result, name: str, frame: TableShape, shapes: TensorShapes) -> object:
    if name == "builtins.len":
        return frame.rows
    if name == "pop" and frame.width is not None:
        return TableShape(frame.rows, None)
    rows, width = frame.rows, frame.width
    if name not in OTHER_ROWS | OTHER_COLUMNS | ALIKE:
        return None
    if name in OTHER_ROWS or (name in OTHER_COLUMNS and "columns" not in value.kwargs):
        rows = shapes.symbols.new()
    if name in OTHER_COLUMNS and width is not None:
        width = shapes.symbols.new()
    return None if "inplace" in value.kwargs else TableShape(rows, width)


def _of_operator(value: Result, shapes: TensorShapes) -> object | None:
    name = value.maker.removeprefix("operator.")
    if name == "getitem" and len(value.args) == 2:
        return _item(value.args[0], value.args[1], shapes)
    if name.removeprefix("i") not in SIGNS and name not in SIGNS:
        return None
    sides = [shapes.of(v) for v in value.args]
    frames = [s for s in sides if isinstance(s, TableShape)]
    wide = [f for f in frames if f.width is not None]
    return (wide or frames)[0] if frames else None


def _item(owner: Value, key: Value, shapes: TensorShapes) -> object | None:
    """Return the columns or rows that a subscript takes: `df["y"]`, `df[names]`, `df.iloc[a:b]`."""
    if isinstance(owner, Part) and owner.key in ("iloc", "loc"):
        frame = shapes.of(owner.of)
        keys = key.members if isinstance(key, Items) and key.kind == "tuple" else [key]
        return _located(frame, keys, shapes) if isinstance(frame, TableShape) else None
    frame = shapes.of(owner)
    if not isinstance(frame, TableShape):
        return None
    if isinstance(constant(key), str) and frame.width is not None:
        return TableShape(frame.rows, None)
    if isinstance(key, Items) and key.is_whole and frame.width is not None:
        is_names = all(isinstance(constant(k), str) for k in key.members)
        return TableShape(frame.rows, len(key.members)) if is_names else UNKNOWN
    is_rows = isinstance(key, Result) and key.maker == "builtins.slice"
    return TableShape(shapes.symbols.new(), frame.width) if is_rows else UNKNOWN


def _located(frame: TableShape, keys: list[Value], shapes: TensorShapes) -> object | None:
    if len(keys) != 2 or frame.width is None or not _is_cut(keys[0]):
        is_cut = len(keys) == 1 and _is_cut(keys[0])
        return TableShape(shapes.symbols.new(), frame.width) if is_cut else UNKNOWN
    is_all = all(isinstance(v, Known) and v.value is None for v in keys[0].inputs)
    rows = frame.rows if is_all else shapes.symbols.new()
    column = keys[1]
    if isinstance(constant(column), (int, str)):
        return TableShape(rows, None)
    if isinstance(column, Items) and column.is_whole:
        return TableShape(rows, len(column.members))
    return TableShape(rows, shapes.symbols.new()) if _is_cut(column) else UNKNOWN


def _is_cut(key: Value) -> bool:
    return isinstance(key, Result) and key.maker == "builtins.slice"


def _picture(value: Result, name: str, picture: Picture, shapes: TensorShapes) -> object | None:
    given = value.args[0] if value.args else None
    if name == "convert":
        mode = constant(given)
        return Picture(picture.height, picture.width, MODES.get(str(mode)))
    if name in ("resize", "crop", "rotate", "transpose", "copy"):
        size = shapes.of(given) if name == "resize" else None
        height, width = shapes.symbols.new(), shapes.symbols.new()
        if isinstance(size, tuple) and len(size) == 2 and all(is_dim(s) for s in size):
            width, height = size
        return Picture(height, width, picture.channels)
    return None
