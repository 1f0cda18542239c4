"""Changes that only the source can make: longer training, a wider model, other batches by hand.

The number that decides is looked for where it is written: a constant, a default, an entry of a
dictionary. Where it is not found, the bound of the loop is multiplied in place.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx.experiments.sandbox.project_folders import scripts_of

MOST_BYTES = 1 << 20
MOST_FILES = 40
LENGTHS = re.compile(
    r"(?i)(?:n_|num_|max_|total_|train_)*(?:epochs?|steps?|iters?|iterations?|updates)"
)
TRAINER_LENGTHS = frozenset({"max_epochs", "num_train_epochs", "max_steps", "epochs", "num_epochs"})
BATCHES = re.compile(r"(?i)(?:train_|mini_?)?(?:batch_?size|batch|bs)")
WIDTHS = re.compile(
    r"(?i)(?:n_|num_|d_)?(?:hidden(?:_?(?:dim|size|units))?|width|model|embd|embed_dim|ff|units)"
)
SMALL = 32  # units; a wider layer is seldom what is lacking, and it is made as wide at least
LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "LSTM", "GRU", "RNN", "Embedding"})
FOLLOWERS = frozenset({"BatchNorm1d", "BatchNorm2d", "LayerNorm"})


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file of the user's program."""

    path: Path
    text: str
    tree: ast.Module


@dataclass(frozen=True, slots=True)
class NumberEdit:
    """A stretch of one line and what stands there instead."""

    line: int
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class NumberPatch:
    """A diff, with what it changes in words."""

    says: str
    patch: str


def sources_of(command: Sequence[str], cwd: Path) -> list[SourceText]:
    """Return the scripts of a command, and the files beside them that they import."""
    scripts = list(scripts_of(command, cwd))
    if "-m" in command[:-1]:
        module = cwd / (command[list(command).index("-m") + 1].replace(".", "/") + ".py")
        scripts += [module] if module.is_file() else []
    waiting = list(scripts)
    found: dict[Path, SourceText] = {}
    while waiting and len(found) < MOST_FILES:
        path = waiting.pop(0)
        if path in found or (source := _read(path)) is None:
            continue
        found[path] = source
        names = {n for node in ast.walk(source.tree) for n in _imported(node)}
        near = [path.parent / f"{n.replace('.', '/')}.py" for n in sorted(names)]
        waiting += [p for p in near if p.is_file()]
    return list(found.values())


def _read(path: Path) -> SourceText | None:
    try:
        if path.suffix != ".py" or path.stat().st_size > MOST_BYTES:
            return None
        text = path.read_text(encoding="utf-8")
        return SourceText(path, text, ast.parse(text))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module


# longer training


def longer(sources: Sequence[SourceText], factor: int, given: Sequence[str]) -> NumberPatch | None:
    """Return a diff that lets the outermost training loop run several times as long."""
    for source in sources:
        bound = _bound_of_training(source)
        if bound is None:
            continue
        found = _number_behind(bound, sources, given) or _wrapped(bound, source, factor)
        if found is not None:
            return _multiplied(found, factor)
    return None


def _bound_of_training(source: SourceText) -> ast.expr | None:
    """Return how often the outermost loop that leads to a backward pass is run."""
    learners = _learning_functions(source.tree)
    for node in ast.walk(source.tree):  # outer nodes come first
        if isinstance(node, (ast.For, ast.While)) and _learns(node, learners):
            bound = _bound(node)
            if bound is not None:
                return bound
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in TRAINER_LENGTHS and _called(node).endswith(
                    ("Trainer", "Arguments")
                ):
                    return keyword.value
    return None


def _learning_functions(tree: ast.AST) -> set[str]:
    """Return the names of the functions below which a backward pass is made."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    names: set[str] = set()
    for _ in range(3):  # calls of calls
        names |= {f.name for f in functions if _learns(f, names)}
    return names


def _learns(node: ast.AST, learners: set[str]) -> bool:
    calls = (n for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(_called(c) in learners | {"backward"} for c in calls)


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _bound(loop: ast.For | ast.While) -> ast.expr | None:
    if isinstance(loop, ast.While):
        test = loop.test
        is_below = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Lt, ast.LtE))
        return test.comparators[0] if isinstance(test, ast.Compare) and is_below else None
    for call in ast.walk(loop.iter):
        if isinstance(call, ast.Call) and _called(call) in ("range", "trange") and call.args:
            return call.args[min(1, len(call.args) - 1)]
    return None


# where a number is written


@dataclass(frozen=True, slots=True)
class _Found:
    source: SourceText
    node: ast.expr
    name: str
    is_wrapped: bool = False


def _number_behind(
    bound: ast.expr, sources: Sequence[SourceText], given: Sequence[str]
) -> _Found | None:
    name = _name_of(bound)
    if isinstance(bound, ast.Constant):
        own = next((s for s in sources if any(n is bound for n in ast.walk(s.tree))), None)
        is_number = type(bound.value) is int
        return _Found(own, bound, "the loop") if own is not None and is_number else None
    if isinstance(bound, ast.BinOp):  # start + epochs
        named = (p for p in (bound.left, bound.right) if not isinstance(p, ast.Constant))
        parts = (_number_behind(p, sources, given) for p in named)
        return next((p for p in parts if p is not None), None)
    if not name or _is_given(name, given):
        return None
    found = [f for s in sources for f in _written(s, name)]
    return found[0] if len(found) == 1 else None


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    if isinstance(node, ast.Call) and _called(node) == "int" and node.args:
        return _name_of(node.args[0])
    return ""


def _is_given(name: str, given: Sequence[str]) -> bool:
    option = name.replace("_", "-")
    return any(
        w.lstrip("-").partition("=")[0].replace("_", "-") == option for w in given if w[:1] == "-"
    )


def _written(source: SourceText, name: str) -> Iterator[_Found]:
    """Yield the integers that a name stands for: assigned, by default, or in a dictionary."""
    for node in ast.walk(source.tree):
        for target, value in _pairs(node):
            is_number = isinstance(value, ast.Constant) and type(value.value) is int
            if target == name and is_number:
                yield _Found(source, value, name)


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from (
                    (_name_of(t), v) for t, v in zip(target.elts, node.value.elts, strict=False)
                )
            else:
                yield _name_of(target), node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield _name_of(node.target), node.value
    elif isinstance(node, ast.FunctionDef):
        named = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        yield from ((a.arg, d) for a, d in zip(named, node.args.defaults, strict=False))
        only = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=False)
        yield from ((a.arg, d) for a, d in only if d is not None)
    elif isinstance(node, ast.Dict):
        keys = zip(node.keys, node.values, strict=False)
        yield from ((str(k.value), v) for k, v in keys if isinstance(k, ast.Constant))
    elif isinstance(node, ast.Call):
        yield from _call_pairs(node)


def _call_pairs(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    if _called(call) == "add_argument":
        names = [a.value for a in call.args if isinstance(a, ast.Constant)]
        default = next((k.value for k in call.keywords if k.arg == "default"), None)
        if default is not None:
            yield from ((str(n).lstrip("-").replace("-", "_"), default) for n in names[-1:])
    else:
        yield from ((k.arg, k.value) for k in call.keywords if k.arg)


def _wrapped(bound: ast.expr, source: SourceText, factor: int) -> _Found | None:
    if bound.lineno != bound.end_lineno:
        return None
    own = ast.get_source_segment(source.text, bound)
    return None if own is None else _Found(source, bound, own, is_wrapped=True)


def _multiplied(found: _Found, factor: int) -> NumberPatch | None:
    node = found.node
    own = ast.get_source_segment(found.source.text, node)
    if own is None or node.lineno != node.end_lineno or node.end_col_offset is None:
        return None
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, int)
    new = f"({own}) * {factor}"
    if is_number and not found.is_wrapped and isinstance(node, ast.Constant):
        new = str(int(node.value) * factor)  # type: ignore[arg-type]
    edit = NumberEdit(node.lineno, node.col_offset, node.end_col_offset, new)
    return NumberPatch(f"{found.name}: {own} → {new}", _diff(found.source, [edit]))


def _diff(source: SourceText, edits: Sequence[NumberEdit]) -> str:
    lines = source.text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda e: (e.line, e.start), reverse=True):
        data = lines[edit.line - 1].encode()
        data = data[: edit.start] + edit.new.encode() + data[edit.end :]
        lines[edit.line - 1] = data.decode()
    name = str(source.path).lstrip("/")
    before = source.text.splitlines(keepends=True)
    made = list(difflib.unified_diff(before, lines, f"a/{name}", f"b/{name}"))
    return "".join(t if t.endswith("\n") else f"{t}\n\\ No newline at end of file\n" for t in made)


# batches and widths


def other_batches(
    sources: Sequence[SourceText], factor: float, given: Sequence[str]
) -> NumberPatch | None:
    """Return a diff that changes the size of batches that are made by hand."""
    for source in sources:
        found = [f for f in _named(source, BATCHES) if not _is_given(f.name, given)]
        if len(found) == 1:
            return _scaled(found[0], factor)
    return None


def wider(sources: Sequence[SourceText], factor: int, given: Sequence[str]) -> NumberPatch | None:
    """Return a diff that makes small hidden layers at least so many times as wide."""
    for source in sources:
        found = [f for f in _named(source, WIDTHS) if not _is_given(f.name, given)]
        small = [f for f in found if 0 < _int(f.node) <= SMALL]
        if len(small) == 1:
            return _scaled(small[0], _widening(_int(small[0].node), factor))
        edits = _hidden_literals(source, factor)
        if edits and not found:
            return NumberPatch("hidden layers", _diff(source, edits))
    return None


def _widening(width: int, least: int) -> int:
    return max(least, -(-SMALL // width))


def _named(source: SourceText, names: re.Pattern[str]) -> list[_Found]:
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _called(node) != "add_argument":
            continue  # the argument of a call is no definition
        for name, value in _pairs(node):
            if (
                names.fullmatch(name)
                and isinstance(value, ast.Constant)
                and type(value.value) is int
            ):
                found.append(_Found(source, value, name))
    return found


def _int(node: ast.expr) -> int:
    value = node.value if isinstance(node, ast.Constant) else 0
    return value if isinstance(value, int) else 0


def _scaled(found: _Found, factor: float) -> NumberPatch | None:
    before = _int(found.node)
    after = max(1, round(before * factor))
    node = found.node
    if after == before or node.end_col_offset is None:
        return None
    edit = NumberEdit(node.lineno, node.col_offset, node.end_col_offset, str(after))
    return NumberPatch(f"{found.name}: {before} → {after}", _diff(found.source, [edit]))


def _hidden_literals(source: SourceText, factor: int) -> list[NumberEdit]:
    """Return the widths that one layer gives and another one takes, written as numbers."""
    calls = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call)]
    layers = [c for c in calls if _called(c) in LAYERS and len(c.args) > 1]
    norms = [c for c in calls if _called(c) in FOLLOWERS and c.args]
    given = {_int(c.args[1]) for c in layers}
    taken = {_int(c.args[0]) for c in layers}
    hidden = {n for n in given & taken if 1 < n <= SMALL}
    factor = _widening(min(hidden), factor) if hidden else factor
    places = [a for c in layers for a in c.args[:2]] + [c.args[0] for c in norms]
    return [
        NumberEdit(a.lineno, a.col_offset, a.end_col_offset or 0, str(_int(a) * factor))
        for a in places
        if isinstance(a, ast.Constant) and _int(a) in hidden
    ]
