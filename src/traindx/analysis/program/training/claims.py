"""One call makes a finding about source code, and one makes its patch.

With the questions that most rules begin with, so that they need no other import.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from traindx.analysis.program import patches, renames
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Site, Value
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.program import Story, each_place, program_of
from traindx.model.findings import Evidence, Finding, Location, Strength

__all__ = ["Story", "each_place", "program_of"]  # beside what is made here: rules begin with them

Where = ProgramEvent | Deed | Site | Value


def site_of(where: Where) -> Site:
    """Return the place of an event, deed or value."""
    if isinstance(where, Site):
        return where
    if isinstance(where, Deed):
        return where.event.site
    if isinstance(where, ProgramEvent):
        return where.site
    if where.site is None:
        raise ValueError("a value without a place cannot be cited")
    return where.site


def cite(where: Where, says: str) -> Evidence:
    """Return what a place in the source shows, as evidence that can be looked up."""
    site = site_of(where)
    return site.module.cite(site.node, says)


def shown(value: Value | None, otherwise: Where) -> Where:
    """Return a value where its place is known, else what stands for it."""
    return otherwise if value is None or value.site is None else value


def cited(where: Value | ProgramEvent | None, says: str) -> tuple[Evidence, ...]:
    """Return what the place of a value or event shows; nothing where that is not known."""
    return () if where is None or where.site is None else (cite(where, says),)


def node_of(where: Value | ProgramEvent | None) -> object:
    """Return the expression that made a value or event; None where that is not known."""
    return None if where is None or where.site is None else where.site.node


def location_of(where: Where) -> Location:
    """Return where in the source something is."""
    site = site_of(where)
    return site.module.location(site.module.statement_of(site.node) or site.node)


def line_of(where: Where) -> tuple[str, int]:
    """Return the file and the line of something in the source."""
    place = site_of(where)
    return place.module.path, int(getattr(place.node, "lineno", 1))


def finding(
    claim: str,
    *shown: Evidence | tuple[Where, str],
    cause: str = "",
    at: Where | None = None,
    strength: Strength = Strength.STRONG,
    is_symptom: bool = True,
    patch: str | None = None,
    hint: Strength | None = None,
) -> Finding:
    """Return a finding that source code shows; as a hint it only makes a cause likelier.

    It is shown by places, each with what it says. It is about the first one unless another is
    named. A rule that speaks for one cause alone need not name it again.
    """
    places = [item[0] for item in shown if isinstance(item, tuple)]
    place = at if at is not None else places[0]
    evidence = tuple(cite(*item) if isinstance(item, tuple) else item for item in shown)
    return Finding(
        claim=_opened(claim),
        strength=strength,
        evidence=evidence or (cite(place, "here"),),
        shows=cause if hint is None else None,
        suggests={} if hint is None else {cause: hint},
        is_symptom=is_symptom,
        location=location_of(place),
        patch=patch,
    )


# a default that stands where a value has no name: `the data`
NO_NAME = re.compile(r"`((?:the|a|an) [a-z -]+)`")


def _opened(claim: str) -> str:
    """Mark a name at the beginning of a claim as code, and no words that are no name."""
    if NO_NAME.match(claim):
        claim = claim[:1] + claim[1].upper() + claim[2:]
        claim = re.sub(r"^`([^`]*)`", r"\1", claim)
    claim = NO_NAME.sub(r"\1", claim)
    first, space, rest = claim.partition(" ")
    return f"`{first}`{space}{rest}" if first[:1].islower() else claim


def variable_at(where: Where, value: Value) -> str:
    """Return the name of the variable that holds a value in the file of a place; "" for none."""
    bound = {n.id for n in ast.walk(site_of(where).module.tree) if isinstance(n, ast.Name)}
    return min(value.names & bound, key=lambda name: (len(name), name), default="")


def insert_after(where: Where, text: str) -> str | None:
    """Return the patch that adds statements after the one in which something is done."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    if statement is None:
        return None
    return patches.diff(site.module, patches.inserting_after(site.module, statement, text))


def insert_before(where: Where, text: str) -> str | None:
    """Return the patch that adds statements before the one in which something is done."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    if statement is None:
        return None
    return patches.diff(site.module, patches.inserting_before(site.module, statement, text))


def insert_first(event: ProgramEvent, text: str) -> str | None:
    """Return the patch that makes a statement the first of the function in which an event is."""
    first = _first_statement(event)
    if first is None:
        return None
    return patches.diff(event.module, patches.inserting_before(event.module, first, text))


def move_first(event: ProgramEvent) -> str | None:
    """Return the patch that makes the statement of an event the first of its function."""
    statement = event.statement
    first = _first_statement(event)
    if first is None or statement is None or statement is first:
        return None
    text = "\n".join(_dedented(event.module.lines, statement))
    edits = (
        patches.inserting_before(event.module, first, text),
        patches.removing(event.module, statement),
    )
    return patches.diff(event.module, *edits)


def _first_statement(event: ProgramEvent) -> ast.stmt | None:
    """Return the first statement of the function in which an event is, after its docstring."""
    body = (
        []
        if event.function is None or isinstance(event.function, ast.Lambda)
        else (event.function.body)
    )
    is_doc = (
        len(body) > 1
        and isinstance(body[0], ast.Expr)
        and (isinstance(body[0].value, ast.Constant))
    )
    rest = body[1:] if is_doc else body
    return rest[0] if rest else None


def move_before(where: Where, other: Where) -> str | None:
    """Return the patch that moves one statement before another of the same file."""
    site, target = site_of(where), site_of(other)
    statement = site.module.statement_of(site.node)
    anchor = target.module.statement_of(target.node)
    if statement is None or anchor is None or site.module is not target.module:
        return None
    text = "\n".join(_dedented(site.module.lines, statement))
    edits = (
        patches.removing(site.module, statement),
        patches.inserting_before(site.module, anchor, text),
    )
    return patches.diff(site.module, *edits)


def surround(where: Where, before: str, after: str) -> str | None:
    """Return the patch that adds statements before and after one; an empty text adds nothing."""
    site = site_of(where)
    module, statement = site.module, site.module.statement_of(site.node)
    if statement is None:
        return None
    edits = [patches.inserting_before(module, statement, before)] if before else []
    edits += [patches.inserting_after(module, statement, after)] if after else []
    return patches.diff(module, *edits)


def enclose(where: Where, header: str) -> str | None:
    """Return the patch that puts a statement into a `with`."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    edit = None if statement is None else patches.within(site.module, statement, header)
    return None if edit is None else patches.diff(site.module, edit)


def decorate(where: Where, text: str) -> str | None:
    """Return the patch that decorates the function in which something is done."""
    site = site_of(where)
    function = site.module.function_of(site.node)
    if function is None:
        return None
    return patches.diff(site.module, patches.inserting_before(site.module, function, text))


def remove(where: Where) -> str | None:
    """Return the patch that takes away the statement in which something is done."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    return (
        None
        if statement is None
        else patches.diff(site.module, patches.removing(site.module, statement))
    )


def move_after(where: Where, other: Where) -> str | None:
    """Return the patch that moves one statement behind another of the same file."""
    site, target = site_of(where), site_of(other)
    statement = site.module.statement_of(site.node)
    anchor = target.module.statement_of(target.node)
    if statement is None or anchor is None or site.module is not target.module:
        return None
    text = "\n".join(_dedented(site.module.lines, statement))
    edits = (
        patches.removing(site.module, statement),
        patches.inserting_after(site.module, anchor, text),
    )
    return patches.diff(site.module, *edits)


def replace(where: Where, text: str) -> str | None:
    """Return the patch that puts another expression in the place of one."""
    site = site_of(where)
    if not isinstance(site.node, (ast.expr, ast.stmt)):
        return None
    return patches.diff(site.module, patches.replacing(site.node, text))


def replace_statement(where: Where, *lines: str) -> str | None:
    """Return the patch that puts others in the place of the statement that is only this call."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    if not isinstance(statement, ast.Expr) or statement.value is not site.node:
        return None
    text = f"\n{' ' * statement.col_offset}".join(lines)
    return patches.diff(site.module, patches.replacing(statement, text))


def remove_alone(where: Where) -> str | None:
    """Return the patch that takes away a call that is a statement of its own."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    is_alone = isinstance(statement, ast.Expr) and statement.value is site.node
    return remove(where) if is_alone else None


def is_same_function(one: Where, other: Where) -> bool:
    """Tell whether two places are in one function, where one name means one thing."""
    a, b = site_of(one), site_of(other)
    return a.module is b.module and a.module.function_of(a.node) is b.module.function_of(b.node)


def receiver_of(where: Where) -> Site | None:
    """Return the expression that a method is called on."""
    site = site_of(where)
    func = site.node.func if isinstance(site.node, ast.Call) else None
    return Site(site.module, func.value) if isinstance(func, ast.Attribute) else None


def argument_of(where: Where, position: int = 0) -> Site | None:
    """Return the expression that a call or an operator is given."""
    site = site_of(where)
    given = site.node.args if isinstance(site.node, ast.Call) else []
    if isinstance(site.node, ast.BinOp):
        given = [site.node.left, site.node.right]
    elif isinstance(site.node, ast.Compare):
        given = [site.node.left, *site.node.comparators]
    return Site(site.module, given[position]) if position < len(given) else None


def with_argument(where: Where, name: str, text: str, position: int | None = None) -> str | None:
    """Return the patch that gives a call an argument by name, or another value for it."""
    site = site_of(where)
    call = site.node
    if not isinstance(call, ast.Call) or any(k.arg is None for k in call.keywords):
        return None
    given = [k.value for k in call.keywords if k.arg == name]
    if position is not None and position < len(call.args):
        given = [call.args[position]]
    if given:
        return patches.diff(site.module, patches.replacing(given[0], text))
    whole = site.module.source(call)
    separator = ", " if call.args or call.keywords else ""
    body = whole[:-1].rstrip().rstrip(",")
    return patches.diff(site.module, patches.replacing(call, f"{body}{separator}{name}={text})"))


def replace_argument(call: ProgramEvent, given: Value, text: str) -> str | None:
    """Return the patch that gives a call something else in the place of a value."""
    node = call.node
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    positional = zip(node.args, call.args, strict=False)
    named = ((k.value, call.kwargs.get(k.arg or "")) for k in node.keywords)
    for written, value in (*positional, *named):
        if value is given:
            return patches.diff(call.module, patches.replacing(written, text))
    return None


def rewrite_statement(where: Where, text: str) -> str | None:
    """Return the patch that puts another statement in the place of one."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    if statement is None:
        return None
    return patches.diff(site.module, patches.replacing(statement, text))


def replace_value(where: Where, text: str) -> str | None:
    """Return the patch that assigns another value in the statement of a place."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    if not isinstance(statement, ast.Assign):
        return None
    return patches.diff(site.module, patches.replacing(statement.value, text))


def imports(where: Where, name: str) -> bool:
    """Tell whether the file of a place imports a module under its own name."""
    return site_of(where).module.aliases.get(name) == name


def source_text(where: Where) -> str:
    """Return an expression as it is written."""
    site = site_of(where)
    return site.module.source(site.node) if isinstance(site.node, ast.expr) else ""


def insert_argument_after(where: Where, text: str) -> str | None:
    """Return the patch that adds an argument behind another, on a line of its own if that is."""
    site = site_of(where)
    if not isinstance(site.node, ast.expr):
        return None
    own = site.module.source(site.node)
    line = site.module.lines[site.node.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    is_alone = line.strip().startswith(own.split("\n", 1)[0])
    gap = f",\n{indent}" if is_alone else ", "
    return patches.diff(site.module, patches.replacing(site.node, f"{own}{gap}{text}"))


def add_argument(where: Where, text: str) -> str | None:
    """Return the patch that gives a call one more argument."""
    site = site_of(where)
    call = site.node
    if not isinstance(call, ast.Call) or call.end_lineno is None or call.end_col_offset is None:
        return None
    line, column = call.end_lineno, call.end_col_offset - 1
    gap = ", " if call.args or call.keywords else ""
    return patches.diff(site.module, patches.Edit(line, column, line, column, f"{gap}{text}"))


def first_parameter(event: ProgramEvent) -> str:
    """Return the name of the first input of the method in which an event is."""
    taken = [] if event.function is None else event.function.args.args
    return taken[1].arg if len(taken) > 1 and taken[0].arg == "self" else ""


def callee_text(where: Where) -> str:
    """Return how a call writes what it calls: `loss_fn`, `nn.Linear`."""
    site = site_of(where)
    return site.module.source(site.node.func) if isinstance(site.node, ast.Call) else ""


def name_apart(event: ProgramEvent) -> str | None:
    """Return the patch that gives a function and its result two names: `loss = loss(…)`."""
    statement = event.statement
    return renames.apart(event.module, statement) if isinstance(statement, ast.Assign) else None


def written_argument(event: ProgramEvent, value: Value) -> str:
    """Return how a call writes the argument that is a value; empty where none is."""
    node = event.node
    if not isinstance(node, ast.Call):
        return ""
    pairs = [*zip(node.args, event.args, strict=False)]
    named = {k.arg: k.value for k in node.keywords if k.arg is not None}
    pairs += [(n, event.kwargs[k]) for k, n in named.items() if k in event.kwargs]
    found = (n for n, held in pairs if held is value and isinstance(n, (ast.Name, ast.Attribute)))
    return next((event.module.source(n) for n in found), "")


def argument_site(event: ProgramEvent, value: Value) -> Site | None:
    """Return the expression by which a call gets a value."""
    node = event.node
    if not isinstance(node, ast.Call):
        return None
    pairs = zip(node.args, event.args, strict=False)
    found = next((n for n, held in pairs if held is value), None)
    is_plain = found is not None and not isinstance(found, ast.Starred)
    return Site(event.module, found) if is_plain and found is not None else None


def use_of(where: Where, value: Value) -> Site | None:
    """Return the name in a statement that stands for a value."""
    site = site_of(where)
    statement = site.module.statement_of(site.node) or site.node
    for node in ast.walk(statement):
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
        is_read = isinstance(getattr(node, "ctx", None), ast.Load)
        if is_read and name in value.names and isinstance(node, (ast.Name, ast.Attribute)):
            return Site(site.module, node)
    return None


def _dedented(lines: Sequence[str], statement: ast.stmt) -> list[str]:
    found = lines[statement.lineno - 1 : statement.end_lineno or statement.lineno]
    indent = len(found[0]) - len(found[0].lstrip())
    return [line[indent:] for line in found]


def insert_at_top(loop: Where, text: str) -> str | None:
    """Return the patch that adds a statement at the top of a loop's body."""
    site = site_of(loop)
    if not isinstance(site.node, (ast.For, ast.AsyncFor, ast.While)):
        return None
    return patches.diff(site.module, patches.inserting_before(site.module, site.node.body[0], text))


def counter_of(loop: Where) -> str:
    """Return the name that counts the turns of a loop; empty where none does."""
    node = site_of(loop).node
    is_named = isinstance(node, (ast.For, ast.AsyncFor)) and isinstance(node.target, ast.Name)
    return node.target.id if is_named else ""  # type: ignore[attr-defined]


def is_same_scope(where: Where, other: Where) -> bool:
    """Tell whether two places see the same local names."""
    first, second = site_of(where), site_of(other)
    module = first.module
    is_near = module is second.module
    return is_near and module.function_of(first.node) is module.function_of(second.node)


def set_argument(call: Where, name: str, text: str) -> str | None:
    """Return the patch that gives a call a keyword argument, or another value for it."""
    site = site_of(call)
    node = site.node
    if not isinstance(node, ast.Call):
        return None
    given = next((k.value for k in node.keywords if k.arg == name), None)
    if given is not None:
        return patches.diff(site.module, patches.replacing(given, text))
    parts: list[ast.expr] = [*node.args, *(k.value for k in node.keywords)]
    if not parts:
        return None
    last = max(parts, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0))
    line, end = last.end_lineno or last.lineno, last.end_col_offset or 0
    return patches.diff(site.module, patches.Edit(line, end, line, end, f", {name}={text}"))


def function_name(where: Where) -> str:
    """Return the name of the function that a place is in; empty at the top of a file."""
    site = site_of(where)
    function = site.module.function_of(site.node)
    return "" if function is None else function.name


def statement_text(where: Where) -> str:
    """Return the statement in which something is done as it is written."""
    site = site_of(where)
    statement = site.module.statement_of(site.node)
    return "" if statement is None else ast.unparse(statement)
