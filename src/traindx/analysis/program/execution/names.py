"""What names and attributes hold: local, around, of the file, of other files, of libraries."""

from __future__ import annotations

import ast
import builtins
import math
from functools import lru_cache
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import (
    calls,
    classes,
    enumerations,
    expressions,
    layer_parts,
    library,
    loader_parts,
    namespaces,
    statements,
)
from traindx.analysis.program.execution.truth import is_recorded
from traindx.analysis.program.execution.values import (
    Choice,
    ClassValue,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    Items,
    Known,
    Method,
    Part,
    PartialCall,
    Result,
    Scope,
    Site,
    SuperValue,
    Table,
    Unknown,
    Value,
)
from traindx.analysis.program.project import LIBRARIES
from traindx.analysis.program.syntax import Function, Module

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

# what people call these, where a posted piece of code leaves the imports out
CONVENTIONS = {
    "torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim",
    "np": "numpy", "plt": "matplotlib.pyplot", "pl": "pytorch_lightning", "dist":
    "torch.distributed", "DataLoader": "torch.utils.data.DataLoader", "pd": "pandas",
    "lr_scheduler": "torch.optim.lr_scheduler", "copy": "copy", "DDP":
    "torch.nn.parallel.DistributedDataParallel", "SGD": "torch.optim.SGD",
    "Adam": "torch.optim.Adam", "AdamW": "torch.optim.AdamW",
}  # fmt: skip
BUILTINS = frozenset(dir(builtins))


def resolve(m: Machine, name: str, scope: Scope) -> Value:
    """Return what a name holds in a scope."""
    looked: Scope | None = scope
    while looked is not None:
        if name in looked.names:
            return looked.names[name]
        looked = looked.around
    return of_file(m, scope.module, name)


def file_scope(m: Machine, module: Module) -> Scope:
    """Return the scope of a file."""
    if module not in m.files:
        m.files[module] = Scope(module)
    return m.files[module]


def of_file(m: Machine, module: Module, name: str) -> Value:
    """Return what a name means at the top level of a file."""
    scope = file_scope(m, module)
    if name in scope.names:
        return scope.names[name]
    defined = _definitions(module).get(name)
    if defined is not None:
        value = _defined(m, defined, scope)
    elif name in module.aliases:
        scope.names[name] = External(canonical(module.aliases[name]))  # ends a circle of imports
        value = _imported(m, module, name)
    elif name in _variables(m, module) and module not in m.loaded:
        statements.load(m, module)
        return scope.names.get(name) or Unknown(name=name, names=frozenset({name}))
    else:
        value = _free(name)
    scope.names[name] = value
    return value


def _free(name: str) -> Value:
    """A name that nothing in sight binds."""
    if name in BUILTINS:
        return External(f"builtins.{name}")
    if name in CONVENTIONS:
        return External(CONVENTIONS[name])
    return Unknown(name=name, names=frozenset({name}))


@lru_cache(maxsize=4096)
def _definitions(module: Module) -> dict[str, Function | ast.ClassDef]:
    """The functions and classes that a file defines at its top level, branches included."""
    found: dict[str, Function | ast.ClassDef] = {}
    pending: list[ast.stmt] = list(module.tree.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = node
        for block in ("body", "orelse", "finalbody", "handlers"):
            inner = getattr(node, block, [])
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                pending.extend(inner)
    return found


def _variables(m: Machine, module: Module) -> set[str]:
    return {key for key in m.project.bindings(module.tree) if "." not in key}


def _defined(m: Machine, node: Function | ast.ClassDef, scope: Scope) -> Value:
    if isinstance(node, ast.ClassDef):
        return class_value(m, node, scope)
    return statements.decorated(m, node, scope, FunctionValue(scope.module, node, scope))


def class_value(m: Machine, node: ast.ClassDef, scope: Scope) -> ClassValue:
    """Return the class that a definition makes, with its bases."""
    own: list[ClassValue] = []
    foreign: list[str] = []
    for base in node.bases:
        target = base.value if isinstance(base, ast.Subscript) else base
        found = _earlier(m, target, scope) if _is_called(target, node.name) else None
        found = found or _base(m, target, scope)
        if isinstance(found, ClassValue) and found.node is not node:
            own.append(found)
        elif isinstance(found, External):
            foreign.append(found.name)
        else:
            foreign.append(scope.module.qualified(target) or "?")
    site = Site(scope.module, node)
    return ClassValue(scope.module, node, scope, tuple(foreign), tuple(own), site=site)


def _is_called(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _earlier(m: Machine, node: ast.expr, scope: Scope) -> Value:
    """Return what a base of the class's own name is: what the name meant before."""
    name = node.id if isinstance(node, ast.Name) else ""
    return _imported(m, scope.module, name) if name in scope.module.aliases else External("?")


def _base(m: Machine, node: ast.expr, scope: Scope) -> Value | None:
    if isinstance(node, ast.Name):
        return resolve(m, node.id, scope)
    if isinstance(node, ast.Attribute):
        owner = _base(m, node.value, scope)
        return None if owner is None else attribute(m, owner, node.attr, node, scope)
    return None


def _imported(m: Machine, module: Module, name: str) -> Value:
    dotted = module.aliases[name]
    if dotted.split(".", 1)[0] in LIBRARIES:
        return External(canonical(dotted))
    home, rest = _home(m, module, dotted)
    if home is None:
        return External(canonical(dotted))
    value: Value = External(dotted)
    for position, part in enumerate(rest):
        owner = of_file(m, home, part) if position == 0 else value
        value = owner if position == 0 else attribute(m, value, part, module.tree, Scope(home))
    return value if rest else External(dotted)


def imported_file(
    m: Machine, module: Module, node: ast.Import | ast.ImportFrom, name: str
) -> Module | None:
    """Return the file of the project that an import of a name runs; None if it is none of ours."""
    around = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    dotted = f"{around}.{name}".strip(".*")
    if dotted.split(".", 1)[0] in LIBRARIES:
        return None
    home, _ = _home(m, module, dotted)
    return home if home is not None and not home.is_test else None


def _home(m: Machine, module: Module, dotted: str) -> tuple[Module | None, list[str]]:
    """Return the file of the project that an imported name is of, and what is left of the name."""
    parts = dotted.split(".")
    for whole in (True, False):  # `engine.train` is in engine.py though there is a train.py
        for end in range(len(parts), 0, -1):
            called = m.project.files_called(tuple(parts[:end]), whole=whole)
            found = [f for f in called if f is not module]
            if found:
                return min(found, key=lambda f: _distance(f.path, module.path)), parts[end:]
    return None, parts


def _distance(path: str, other: str) -> int:
    """Return how many folders lie between two files: the nearest one of a name is meant."""
    first, second = path.split("/")[:-1], other.split("/")[:-1]
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    return len(first) + len(second) - 2 * shared


def attribute(m: Machine, owner: Value, name: str, node: ast.AST, scope: Scope) -> Value:
    """Return an attribute of a value."""
    if (known := classes.attribute(owner, name)) is not None:
        return known
    if isinstance(owner, External):
        return _of_external(m, owner, name, scope)
    if isinstance(owner, Instance):
        return _of_instance(m, owner, name, node, scope)
    if isinstance(owner, ClassValue):
        return of_class(m, owner, name, None)
    if isinstance(owner, SuperValue):
        return _of_super(m, owner, name)
    if isinstance(owner, Choice):
        return _of_choice(m, owner, name, node, scope)
    if name in owner.fields:
        return owner.fields[name]
    if isinstance(owner, EnumMember) and (found := enumerations.attribute(owner, name)) is not None:
        return found
    if isinstance(owner, (Items, Table, Known, Method)):
        return Method(owner, name)
    if name == "training" and (library.MODE in owner.fields or library.is_module(owner)):
        return library.read_mode(owner)
    if name in WRAPPED and library.is_module(owner):
        return owner
    kept = loader_parts.attribute(owner, name) or layer_parts.attribute(owner, name)
    kept = kept or layer_parts.tensor_attribute(owner, name)
    if name == "requires_grad" and is_recorded(owner) is False:
        kept = Known(False)
    return part(owner, name) if kept is None else kept


# where DataParallel and compile keep the model that they wrap, which is followed unwrapped
WRAPPED = frozenset({"module", "_orig_mod"})


def _of_choice(m: Machine, owner: Choice, name: str, node: ast.AST, scope: Scope) -> Value:
    if all(isinstance(o, (Result, Unknown, Part, Known)) for o in owner.options):
        known = [o for o in owner.options if name in o.fields]
        return known[0].fields[name] if len(known) == 1 else part(owner, name)
    found = [attribute(m, o, name, node, scope) for o in owner.options if not isinstance(o, Known)]
    return found[0] if len(found) == 1 else Choice(tuple(found)) if found else part(owner, name)


def part(owner: Value, key: object) -> Value:
    """Return a part of a value whose inside is out of sight; the same one each time."""
    place = ("part", key)
    if place not in owner.fields:
        owner.fields[place] = Part(owner, key)
    return owner.fields[place]


def _of_external(m: Machine, owner: External, name: str, scope: Scope) -> Value:
    if owner.name == "math" and name in ("pi", "e"):
        return Known(getattr(math, name))
    if owner.name.split(".", 1)[0] not in LIBRARIES:
        for home in m.project.files_called(tuple(owner.name.split("."))):
            if home is not scope.module:
                return of_file(m, home, name)
    if name in owner.fields:
        return owner.fields[name]
    return External(canonical(f"{owner.name}.{name}"))


def _of_instance(m: Machine, owner: Instance, name: str, node: ast.AST, scope: Scope) -> Value:
    if name in owner.fields:
        return owner.fields[name]
    if name == "training" and library.is_module(owner):
        return library.read_mode(owner)
    if (entry := namespaces.attribute(owner, name)) is not None:
        return entry
    found = of_class(m, owner.cls, name, owner)
    if isinstance(found, FunctionValue) and _has_decorator(found, "property", "cached_property"):
        return calls.call(m, found, (), {}, node, scope)
    if isinstance(found, Unknown):
        if name in WRAPPED and library.is_module(owner):
            return owner
        return Method(owner, name) if owner.cls.foreign else part(owner, name)
    return found


def _has_decorator(function: FunctionValue, *names: str) -> bool:
    if isinstance(function.node, ast.Lambda):
        return False
    found = (d.func if isinstance(d, ast.Call) else d for d in function.node.decorator_list)
    return any((function.module.qualified(d) or "").rsplit(".", 1)[-1] in names for d in found)


def of_class(m: Machine, cls: ClassValue, name: str, bound: Value | None = None) -> Value:
    """Return what a class has under a name, bound to an object where one is given."""
    found = find_method(m, cls, name, bound)
    if found is not None:
        return found
    for home in cls.lineage():
        for node in home.node.body:
            value = _class_attribute(m, home, node, name)
            if value is not None:
                return value
    if name == "apply" and is_autograd_function(cls):
        return PartialCall(External("torch.autograd.Function.apply"), (cls,), {})
    return Unknown(name=name)


def is_autograd_function(cls: ClassValue) -> bool:
    """Tell whether a class defines an operation with a gradient of its own."""
    return any(base.endswith(("autograd.Function", "function.Function")) for base in cls.foreign)


def _class_attribute(m: Machine, cls: ClassValue, node: ast.stmt, name: str) -> Value | None:
    if isinstance(node, ast.ClassDef) and node.name == name:
        return class_value(m, node, cls.scope)
    value = getattr(node, "value", None)
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    is_assigned = isinstance(node, (ast.Assign, ast.AnnAssign))
    if (
        value is None
        or not is_assigned
        or not any(isinstance(t, ast.Name) and t.id == name for t in targets)
    ):
        return None
    if name not in cls.fields:
        made = expressions.evaluate(m, value, cls.scope)
        cls.fields[name] = enumerations.member(cls, name, made)
    return cls.fields[name]


def find_method(
    m: Machine, cls: ClassValue, name: str, bound: Value | None, *, after: bool = False
) -> Value | None:
    """Return a method by its name, bound to an object where one is given."""
    for position, home in enumerate(cls.lineage()):
        if after and position == 0:
            continue
        for node in reversed(home.node.body):  # the last of several is what the class keeps
            if isinstance(node, Function) and node.name == name and not _is_accessor(node):
                return _method(m, home, node, bound)
    return None


def _is_accessor(node: Function) -> bool:
    """Tell whether a function only adds to a property of its name: `@rate.setter`."""
    return any(isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter")
               for d in node.decorator_list)  # fmt: skip


def _method(m: Machine, home: ClassValue, node: Function, bound: Value | None) -> Value:
    function = FunctionValue(home.module, node, home.scope, owner=home)
    if _has_decorator(function, "staticmethod"):
        return function
    if _has_decorator(function, "classmethod"):
        function.bound = bound.cls if isinstance(bound, Instance) else home
        return function
    function.bound = bound
    if _has_decorator(function, "property", "cached_property"):
        return function
    return statements.decorated(m, node, home.scope, function)


def _of_super(m: Machine, owner: SuperValue, name: str) -> Value:
    found = find_method(m, owner.owner, name, owner.bound, after=True)
    if found is not None:
        return found
    bound = owner.bound
    if isinstance(bound, Instance) and name in bound.fields:
        return bound.fields[name]
    return Method(owner, name)


_HOMES = (
    ("torch.nn.modules.", "torch.nn."), ("torch.nn.parameter.", "torch.nn."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.utils.data.distributed.", "torch.utils.data."),
    ("torch.utils.data.sampler.", "torch.utils.data."), ("torch.cuda.amp.", "torch.amp."),
    ("torch.autograd.grad_mode.", "torch."), ("lightning.pytorch.", "lightning."),
    ("pytorch_lightning.", "lightning."), ("lightning_fabric.", "lightning.fabric."),
)  # fmt: skip


def canonical(name: str) -> str:
    """Return the one dotted name of what has several."""
    for old, new in _HOMES:
        if name.startswith(old):
            rest = name[len(old) :]
            # torch.nn.modules.loss.CrossEntropyLoss, torch.optim.adam.Adam: files inside
            return new + (rest.rsplit(".", 1)[-1] if old.startswith("torch.nn.modules") else rest)
    is_apart = "lr_scheduler" in name or "swa_utils" in name
    if name.startswith("torch.optim.") and name.count(".") == 3 and not is_apart:
        return f"torch.optim.{name.rsplit('.', 1)[-1]}"
    return name
