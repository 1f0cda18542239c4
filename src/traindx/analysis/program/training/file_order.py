"""In which order files are read, beside the labels that go with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.examples import Example, settings_of
from traindx.analysis.program.execution.values import (
    FunctionValue,
    Items,
    Known,
    Result,
    Table,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.training.data import inside

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

LISTINGS = frozenset({".glob", ".rglob", ".iterdir", "glob.glob", "glob.iglob", "os.listdir",
                      "os.scandir"})  # fmt: skip
SORTS = frozenset({"builtins.sorted", ".sort"})
PAIRS = (".train_test_split", ".TensorDataset")
ROWS = frozenset({"csv.reader", "csv.DictReader", "pandas.read_csv", "numpy.loadtxt",
                  "numpy.genfromtxt", ".readlines", ".splitlines", ".read_text", ".read",
                  "pandas.read_table"})  # fmt: skip
SAVES = frozenset({"numpy.save", "torch.save", "numpy.savez", "numpy.savetxt", ".save",
                   "cv2.imwrite", "imageio.imwrite", "builtins.open", "open",
                   "soundfile.write", "torchaudio.save",
                   ".write_bytes", ".write_text", "scipy.io.wavfile.write"})  # fmt: skip
FARTHEST = 400


class FileOrder(Enum):
    """The order of a list of files, or of labels."""

    BY_TEXT = "sorted by name as text"
    BY_KEY = "sorted by a key"
    NONE = "as the file system lists them"
    ROWS = "in the order of a file"


@dataclass(frozen=True, eq=False)
class Ordered:
    """Something that is read in some order."""

    order: FileOrder
    value: Result  # the list, or what reads the rows


def orders_of(story: Story, value: Value) -> list[Ordered]:
    """Return in which orders the files and rows stand that a value is made from."""
    found: list[Ordered] = []
    pending, seen = [value], {id(value)}
    while pending and len(seen) < FARTHEST:
        here = pending.pop()
        ordered = _ordered(story, here) if isinstance(here, Result) else None
        if ordered is not None:
            found.append(ordered)
            continue
        for below in here.inputs:
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)
    return found


def _ordered(story: Story, value: Result) -> Ordered | None:
    if value.maker.rsplit(".", 1)[-1] == "natsorted":
        return Ordered(FileOrder.BY_KEY, value)
    if value.maker == "builtins.sorted" and listing_of(value) is not None:
        return Ordered(FileOrder.BY_KEY if "key" in value.kwargs else FileOrder.BY_TEXT, value)
    if value.maker in SORTS and "key" in value.kwargs and _rows_behind(value):
        is_number = _makes_number(value.kwargs["key"])
        return Ordered(FileOrder.BY_KEY if is_number else FileOrder.BY_TEXT, value)
    if value.maker in LISTINGS:
        sorts = [e for e in story.index.on(value) if e.name == ".sort"]
        if any("key" in e.kwargs for e in sorts):
            return Ordered(FileOrder.BY_KEY, value)
        return Ordered(FileOrder.BY_TEXT if sorts else FileOrder.NONE, value)
    return Ordered(FileOrder.ROWS, value) if value.maker in ROWS else None


def _rows_behind(value: Value) -> bool:
    return any(isinstance(v, Result) and v.maker in ROWS for v in origins(value, 60))


def _makes_number(key: Value) -> bool:
    """Tell whether a key that rows are sorted by is a number: `lambda r: int(r["id"][1:])`."""
    node = key.node if isinstance(key, FunctionValue) else None
    return node is not None and any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("int", "float")
        for n in ast.walk(node)
    )


def listing_of(value: Value) -> Result | None:
    """Return the listing of a folder that a list of files comes from."""
    found = (v for v in origins(value, 60) if isinstance(v, Result))
    return next((v for v in found if v.maker in LISTINGS), None)


@dataclass(frozen=True, eq=False)
class OutOfStep:
    """Inputs and labels that are paired by position and stand in different orders."""

    inputs: Ordered
    labels: Ordered
    written: ProgramEvent | None = None  # what names the files, where the program writes them


def out_of_step(story: Story) -> Iterator[OutOfStep]:
    """Yield the inputs and labels of examples that stand in different orders."""
    for example in story.execution.examples:
        value = example.value
        is_pair = isinstance(value, Items) and value.is_whole and len(value.members) == 2
        if is_pair and not _is_looked_up(example, value.members[1]):  # type: ignore[union-attr]
            yield from _compared(story, *value.members)  # type: ignore[union-attr]
    for event in story.events:
        is_pair = event.name == "builtins.zip" or event.name.endswith(PAIRS)
        if is_pair and len(event.args) == 2:
            yield from _compared(story, *event.args)


def _is_looked_up(example: Example, label: Value) -> bool:
    """Tell whether a label comes out of a dictionary: not by position."""
    dataset = settings_of(example.loader).get("dataset")
    tables = [v for v in inside(dataset, 3) if isinstance(v, Table)] if dataset else []
    made = {id(v) for v in origins(label, 60)}
    return any(id(v) in made for table in tables for v in table.fields.values())


def _compared(story: Story, first: Value, second: Value) -> Iterator[OutOfStep]:
    inputs, labels = orders_of(story, first), orders_of(story, second)
    if len({id(o.value) for o in inputs}) != 1 or len({id(o.value) for o in labels}) != 1:
        return
    one, other = inputs[0], labels[0]
    if one.value.site is None or one.value is other.value or _is_one_listing(one, other):
        return
    kinds = (one.order, other.order)
    is_listed = listing_of(one.value) is not None and listing_of(other.value) is not None
    if is_listed and FileOrder.ROWS not in kinds and one.order is not other.order:
        yield OutOfStep(one, other)
    elif kinds in ((FileOrder.BY_TEXT, FileOrder.ROWS), (FileOrder.BY_TEXT, FileOrder.BY_KEY)):
        written = _numbered(story.program, one.value)
        if written is not None:
            yield OutOfStep(one, other, written)


def _is_one_listing(one: Ordered, other: Ordered) -> bool:
    """Tell whether both are made from one list of files."""
    first, second = listing_of(one.value), listing_of(other.value)
    return first is not None and second is not None and (first is second or is_same(first, second))


def _numbered(program: Program, files: Value) -> ProgramEvent | None:
    """What writes such files under a number that counts up and has no leading zeros."""
    listing = listing_of(files)
    pattern = constant(listing.args[-1]) if listing is not None and listing.args else None
    ends = pattern.rsplit("/", 1)[-1] if isinstance(pattern, str) else "*"
    for story in program.stories:
        for event in story.events:
            if event.name not in SAVES:
                continue
            given = [*event.args, *([event.receiver] if event.receiver is not None else [])]
            for value in (v for a in given for v in origins(a, 40)):
                if _is_counted_name(value, ends):
                    return event
    return None


def _is_counted_name(value: Value, pattern: str) -> bool:
    """Tell whether a text is a file's name with a bare count in it: `f"trial_{i}.npy"`."""
    if not isinstance(value, Result) or value.maker not in ("str.format", "operator.add"):
        return False
    parts = list(value.args)
    counts = [p for p in parts if _is_count(p)]
    texts = ["0" if _is_count(p) else constant(p) for p in parts]
    if len(counts) != 1 or not all(isinstance(t, str) for t in texts):
        return False
    name = "".join(map(str, texts)).rsplit("/", 1)[-1]
    return fnmatch(name, pattern) and re.search(r"\.\w+$", name) is not None


def _is_count(value: Value) -> bool:
    """Tell whether a value is the number of a turn, beyond nine as far as the source says."""
    if not isinstance(value, Result) or value.maker != "builtins.next" or not value.args:
        return False
    over = value.args[0]
    if not isinstance(over, Result) or over.maker != "builtins.range":
        return False
    ends = [constant(a) for a in over.args if isinstance(a, Known)]
    return not any(isinstance(e, int) and e <= 10 for e in ends[-1:])
