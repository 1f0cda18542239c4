"""Ways to write one fault: in place, a line ahead, in a function, a class or lines beside it.

A form names the places of a fault (`Site`) and what is written there. In what is written, `<x>` is
the expression that stands there, `<inner>` the one argument of a call that does, `<s>` the
strength, and other words in brackets are names that the site knows; a site that lacks one of them
does not take the form.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from bench.corpus.operators import Change, Form, Rule, add_form
from bench.corpus.source import Edit, Source
from bench.corpus.syntax import imported, is_bound, taken

WORD = re.compile(r"<[a-z_]+>")
# of the standard library: imported where a form needs them
MODULES = (
    "contextlib|copy|datetime|functools|itertools|math|os|random|signal|subprocess|threading|time"
    "|torch|types"
)
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.For)
INNER = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.IfExp)
ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Tuple)


class Side(Enum):
    BEFORE = "before"
    AFTER = "after"
    INSTEAD = "instead"


@dataclass(frozen=True)
class Site:
    """A place of a fault: expressions that are changed together, or a statement beside lines."""

    nodes: tuple[ast.expr, ...] = ()
    anchor: ast.stmt | None = None
    side: Side = Side.BEFORE
    words: Mapping[str, str] = field(default_factory=dict)
    along: tuple[Edit, ...] = ()  # what else has to change with it
    fault: ast.AST | Edit | None = None  # where the fault stands if not where something is written


Sites = Callable[[Source], Iterable[Site]]
Writing = Callable[[Source, Site, float], Change | None]


def forms(
    of: Rule,
    sites: Sites,
    *,
    known: Mapping[str, Writing] | None = None,
    new: Mapping[str, Writing] | None = None,
) -> None:
    """Add forms to an operator: those of development, and those kept for the report."""
    for is_new, writings in ((False, known), (True, new)):
        for name, writing in (writings or {}).items():
            add_form(of, Form(name, _rule(sites, writing), is_new))


def _rule(sites: Sites, writing: Writing) -> Rule:
    def rule(source: Source, strength: float) -> Iterator[Change]:
        for site in sites(source):
            change = writing(source, site, strength)
            if change is not None:
                yield change

    return rule


# What is written


def inline(text: str, *top: str) -> Writing:
    """Write an expression where the old one stands."""

    def write(source: Source, site: Site, strength: float) -> Change | None:
        made = _Text.of(source, (text,), top)
        if made is None or not site.nodes:
            return None
        edits = []
        for node in site.nodes:
            words = {**site.words, "x": operand(source, node), "s": f"{strength:g}"}
            if isinstance(node, ast.Call) and len(node.args) == 1:
                words["inner"] = source.code(node.args[0])
            filled = made.here(words)
            if filled is None or not _are_bound(source, site.words, (text,), node):
                return None
            edits.append(source.replace(node, _fitting(source, node, filled[0])))
        return made.change(site, edits, {**site.words, "s": f"{strength:g}"})

    return write


def ahead(text: str, *top: str, name: str = "prepared") -> Writing:
    """Write an expression on a line of its own, and its name where the old one stands."""

    def write(source: Source, site: Site, strength: float) -> Change | None:
        made = _Text.of(source, (text,), top)
        node = site.nodes[0] if len(site.nodes) == 1 else None
        if made is None or node is None or not is_free(source, node) or name in source.text:
            return None
        words = {**site.words, "x": operand(source, node), "s": f"{strength:g}"}
        filled = made.here(words)
        if filled is None or "\n" in filled[0]:
            return None
        if not _are_bound(source, site.words, (text,), node):
            return None
        line = source.before(source.statement(node), f"{name} = {filled[0]}")
        return made.change(site, [line, source.replace(node, name)], words)

    return write


def lines(*here: str, top: Iterable[str] = (), is_fault_here: bool = False) -> Writing:
    """Write lines before, after or instead of a statement, and others below the imports."""

    def write(source: Source, site: Site, strength: float) -> Change | None:
        made = _Text.of(source, here, tuple(top))
        if made is None or site.anchor is None:
            return None
        words = {**site.words, "s": f"{strength:g}"}
        filled = made.here(words)
        if filled is None or not _are_bound(source, site.words, here, site.anchor):
            return None
        if _own_names(made.lines) & taken(source, site.anchor):
            return None
        edit = _beside(source, site, filled)
        fault = site.fault or (edit if is_fault_here else None)
        return made.change(replace(site, fault=fault), [edit], words)

    return write


def called(function: str, parameters: str, *body: str, returns: str = "") -> Writing:
    """Write lines into a function below the imports, and its call beside the statement."""
    top = (f"def {function}({_plain(parameters)}):", *(f"    {_plain(b)}" for b in body))
    goal = f"{returns} = " if returns else ""
    return lines(f"{goal}{function}({parameters})", top=top)


def function(text: str, name: str = "prepare") -> Writing:
    """Write an expression into a function of `x`, and its call where the old one stands."""
    return inline(f"{name}(<x>)", f"def {name}(x):", f"    return {_plain(text)}")


def module(text: str, name: str = "Prepare") -> Writing:
    """Write an expression into a module of its own, and use that where the old one stands."""
    top = (
        f"class {name}(nn.Module):",
        "    def forward(self, x):",
        f"        return {_plain(text)}",
    )
    return inline(f"{name}()(<x>)", *top)


def accepting(writing: Writing, *causes: str) -> Writing:
    """Return a writing of which other causes are true as well than of the operator's first form."""

    def write(source: Source, site: Site, strength: float) -> Change | None:
        change = writing(source, site, strength)
        return change if change is None else replace(change, accepted=causes)

    return write


def _plain(text: str) -> str:
    """Return a text whose words are the names of parameters; the strength stays a number."""
    return re.sub(r"<(?!s>)([a-z_]+)>", r"\1", text)


# Where it is written


def operand(source: Source, node: ast.expr) -> str:
    """Return the code of an expression, in brackets where something could bind tighter."""
    code = source.code(node)
    return code if isinstance(node, ATOMS) else f"({code})"


def _fitting(source: Source, node: ast.expr, text: str) -> str:
    """Return a text in brackets where the expression around it could tear it apart."""
    is_inner = isinstance(
        source.parents[node], ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Compare | ast.Subscript
    )
    parsed = ast.parse(text.strip(), mode="eval").body
    return f"({text})" if is_inner and not isinstance(parsed, ATOMS) else text


def is_free(source: Source, node: ast.expr) -> bool:
    """Tell whether an expression can be computed on the line ahead of its statement."""
    statement = source.statement(node)
    if not isinstance(statement, SIMPLE):
        return False
    if isinstance(statement, ast.For) and node not in ast.walk(statement.iter):
        return False
    inner = source.around(node, *INNER)
    return inner is None or inner not in ast.walk(statement)


def _are_bound(source: Source, words: Mapping[str, str], text: Iterable[str], at: ast.AST) -> bool:
    """Tell whether the names that a text takes from its site are known where it is written."""
    used = set(WORD.findall("\n".join(text)))
    names = [v for k, v in words.items() if f"<{k}>" in used]
    return all(is_bound(source, n, at) for n in names if n.replace(".", "").isidentifier())


def _own_names(text: Iterable[str]) -> set[str]:
    """Return the names of a form's own in lines: not those of its site, nor of comprehensions."""
    tree = ast.parse(WORD.sub("site", "\n".join(text)).replace("continue", "pass"))
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    inner = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            inner |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return found - inner - {"site", "self"}


def _beside(source: Source, site: Site, filled: tuple[str, ...]) -> Edit:
    assert site.anchor is not None
    if site.side is Side.BEFORE:
        return source.before(site.anchor, *filled)
    if site.side is Side.AFTER:
        return source.after(site.anchor, *filled)
    return source.replace(site.anchor, f"\n{source.indent(site.anchor)}".join(filled))


@dataclass(frozen=True)
class _Text:
    """What a form writes, in the names that a file has for torch's modules."""

    source: Source
    lines: tuple[str, ...]
    top: tuple[str, ...]
    imports: tuple[str, ...]

    @classmethod
    def of(cls, source: Source, here: tuple[str, ...], top: tuple[str, ...]) -> _Text | None:
        bound = imported(source)
        for line in top:
            made = re.match(r"(?:class |def |)(\w+)(?:\(| =)", line)
            if made and re.search(rf"\b{made[1]}\b", source.text):
                return None
        for short, long in (("F", "torch.nn.functional"), ("nn", "torch.nn")):
            if short not in bound:
                here = tuple(re.sub(rf"(?<![\w.]){short}\.", f"{long}.", t) for t in here)
                top = tuple(re.sub(rf"(?<![\w.]){short}\.", f"{long}.", t) for t in top)
        used = set(re.findall(rf"(?<![\w.])({MODULES})\.", "\n".join((*here, *top))))
        imports = [f"import {name}" for name in sorted(used - bound)]
        if any("np." in t for t in (*here, *top)) and "np" not in bound:
            imports.append("import numpy as np")
        return cls(source, here, top, tuple(imports))

    def here(self, words: Mapping[str, str]) -> tuple[str, ...] | None:
        filled = [_fill(line, words) for line in self.lines]
        return tuple(x for x in filled if x is not None) if None not in filled else None

    def change(self, site: Site, edits: list[Edit], words: Mapping[str, str]) -> Change | None:
        above = [self.source.at_top(*self.imports)] if self.imports else []
        fault: Edit | ast.AST = site.fault or edits[0]
        if self.top:
            filled = [_fill(line, words) for line in self.top]
            if None in filled:
                return None
            told = [x for x in filled if x is not None]
            head = self.source.at_top("", *told[:-1])
            mine = Edit(head.start, head.end, f"{told[-1]}\n")
            above += [head, mine]
            fault = site.fault or mine
        return Change((*above, *edits, *site.along), fault)


def _fill(text: str, words: Mapping[str, str]) -> str | None:
    for word, value in words.items():
        if value:
            text = text.replace(f"<{word}>", value)
    return None if WORD.search(text) else text
