"""Which class or function of the source a failure is about, and what is wrong with it."""

from __future__ import annotations

import ast

from traindx.analysis.errors.culprits import Culprit, site_of
from traindx.analysis.program.patches import Edit, diff, inserting_before, removing, replacing
from traindx.analysis.program.project import Project, project_of
from traindx.analysis.program.syntax import Function, Module, key_of
from traindx.model.run import Failure, Run

_CONTAINERS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)


def missing_super_init(run: Run, failure: Failure, name: str) -> Culprit | None:
    """Return the constructor of a module that sets layers before `super().__init__()`."""
    project = project_of(run)
    site = site_of(run, failure)
    cls = site.module.class_of(site.node) if site is not None else None
    wanted = cls.name if cls is not None else name
    for module in project.modules:
        for own in module.classes.values():
            function = module.functions.get(f"{own.name}.__init__")
            is_it = own.name == wanted or (not wanted and project.is_module(module, own))
            edits = _initialising(module, function) if is_it and function is not None else []
            if edits and function is not None:
                says = f"{own.name}.__init__ starts without super().__init__()"
                return Culprit(module, function, says, diff(module, *edits))
    return None


def _initialising(module: Module, function: Function) -> list[Edit]:
    """Move the call to the front, or put it there."""
    body = function.body
    is_doc = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    first = body[1] if is_doc and len(body) > 1 else body[0]
    calls = [s for s in body if _initialises(s)]
    if calls and calls[0] is first:
        return []
    text = ast.unparse(calls[0]) if calls else "super().__init__()"
    edits = [inserting_before(module, first, text)]
    return [*edits, removing(module, calls[0])] if calls else edits


def _initialises(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    owner = func.value if isinstance(func, ast.Attribute) and func.attr == "__init__" else None
    return isinstance(owner, ast.Call) and key_of(owner.func) == "super"


def returned_by(run: Run, dotted: str, says: str) -> Culprit | None:
    """Return the last return statement of a function of the source."""
    for module in project_of(run).modules:
        function = module.functions.get(dotted)
        if function is not None:
            returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
            return Culprit(module, returns[-1] if returns else function, says)
    return None


def definition_of(run: Run, name: str) -> Culprit | None:
    """Return where a called function is defined, if there is only one of its name."""
    short = name.replace(".<locals>", "").split(".")
    found = [
        (m, f)
        for m in project_of(run).modules
        for dotted, f in m.functions.items()
        if dotted.split(".")[-len(short) :] == short
    ]
    if len(found) != 1:
        return None
    module, function = found[0]
    taken = ", ".join(a.arg for a in function.args.args if a.arg != "self")
    return Culprit(module, function, f"{name} is defined here: it takes ({taken})")


def missing_forward(run: Run, name: str) -> Culprit | None:
    """Return the class without a forward, and where its forward went."""
    for module in project_of(run).modules:
        cls = module.classes.get(name)
        if cls is None:
            continue
        for dotted, function in module.functions.items():
            if dotted.startswith(f"{name}.__init__.") and function.name == "forward":
                return Culprit(module, function, "forward is indented into __init__")
            if dotted == "forward":
                return Culprit(module, function, "forward stands outside of the class")
            if dotted.startswith(f"{name}.") and _is_misspelt(function.name):
                says = f"it is spelt {function.name}"
                return Culprit(module, function, says, _respelt(module, function))
        return Culprit(module, cls, "the class defines none")
    return None


def _is_misspelt(name: str) -> bool:
    return name != "forward" and sorted(name.lower().strip("_")) in (
        sorted("forward"), sorted("foward"), sorted("forword"), sorted("forwards")
    )  # fmt: skip


def _respelt(module: Module, function: Function) -> str | None:
    start = module.lines[function.lineno - 1].find(function.name)
    if start < 0:
        return None
    edit = Edit(function.lineno, start, function.lineno, start + len(function.name), "forward")
    return diff(module, edit)


def why_no_parameters(run: Run) -> tuple[str | None, Culprit | None]:
    """Return why an optimizer gets nothing: layers in a plain list, all frozen, or used up."""
    project = project_of(run)
    for module in project.modules:
        found = _hidden_layers(project, module)
        if found is not None:
            return "unregistered-submodules", found
    for module in project.modules:
        found = _frozen(module)
        if found is not None:
            return "frozen-parameters", found
        found = _used_up(module)
        if found is not None:
            return "api-misuse", found
    return None, None


def _hidden_layers(project: Project, module: Module) -> Culprit | None:
    """`self.layers = [nn.Linear(…), …]`: a list that the module does not look into."""
    classes = [c for c in module.classes.values() if project.is_module(module, c)]
    for node in (n for c in classes for n in ast.walk(c) if isinstance(n, ast.Assign)):
        target, value = key_of(node.targets[0]) or "", node.value
        layers = [c for c, name in module.calls(value) if name.startswith("torch.nn.")]
        if not target.startswith("self.") or not isinstance(value, _CONTAINERS) or not layers:
            continue
        kind = "ModuleDict" if isinstance(value, (ast.Dict, ast.DictComp)) else "ModuleList"
        func = layers[0].func  # how this file calls torch.nn
        maker = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
        text = f"{maker}.{kind}({module.source(value)})"
        patch = diff(module, replacing(value, text)) if maker else None
        says = f"{target} is a plain container, its layers are not registered"
        return Culprit(module, node, says, patch)
    return None


def _frozen(module: Module) -> Culprit | None:
    """The statement that freezes every parameter of which a filter then lets none pass."""
    set_to = [s for n in ast.walk(module.tree) if (s := _requires_grad(n)) is not None]
    filters = any(name == "filter" for _, name in module.calls()) or any(
        isinstance(t, ast.Attribute) and t.attr == "requires_grad"
        for n in ast.walk(module.tree)
        for t in (getattr(n, "ifs", None) or [getattr(n, "test", None)])
    )
    if not filters or any(is_on for _, is_on in set_to):
        return None
    says = "every parameter is frozen, and none passes the filter"
    return next((Culprit(module, node, says) for node, _ in set_to), None)


def _requires_grad(node: ast.AST) -> tuple[ast.stmt, bool] | None:
    """A statement that switches gradients, and whether on."""
    if isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            return node, not (isinstance(value, ast.Constant) and value.value is False)
    call = node.value if isinstance(node, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or not isinstance(func, ast.Attribute):
        return None
    given = call.args[0] if call.args else None
    is_off = isinstance(given, ast.Constant) and given.value is False
    if not isinstance(node, ast.Expr) or func.attr != "requires_grad_":
        return None
    return node, not is_off


def _used_up(module: Module) -> Culprit | None:
    """`params = model.parameters()` that is counted first and then given to the optimizer."""
    for node in module.nodes(ast.Assign):
        func = node.value.func if isinstance(node.value, ast.Call) else None
        is_made = isinstance(func, ast.Attribute) and func.attr == "parameters"
        name = key_of(node.targets[0]) if is_made else None
        uses = [n for n in ast.walk(module.tree) if name and key_of(n) == name]
        if name and len(uses) > 2:
            return Culprit(module, node, f"{name} is a generator, which a first use empties")
    return None
