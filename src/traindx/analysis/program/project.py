"""The source files of one run together: classes, functions and bindings across files."""

from __future__ import annotations

import ast
import gc
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from traindx.analysis.program.syntax import Function, Module, key_of
from traindx.model.run import Run, Source

MODULE_BASES = (
    "torch.nn.Module", "nn.Module", "torch.nn.modules.module.Module", "torch.jit.ScriptModule",
    "transformers.PreTrainedModel",
)  # fmt: skip
LARGE = 300  # files: of a library, only what trains is looked at; its models have no program
TRAINS = re.compile(r"backward\(|\.zero_grad\(|\boptim\.|DataLoader\(|\.step\(|LightningModule")
# one of these stands in whatever the pattern finds, and is found far sooner
TRAINING_WORDS = ("backward(", ".zero_grad(", "optim.", "DataLoader(", ".step(", "LightningModule")
NO_CODE = (">>>", "...", "#", "def backward(")
# a name imported from one of these is never one of the user's own files
LIBRARIES = frozenset(
    {"torch", "torchvision", "torchaudio", "torchtext", "numpy", "scipy", "sklearn", "pandas",
     "transformers", "datasets", "accelerate", "lightning", "pytorch_lightning", "timm", "os",
     "sys", "math", "random", "typing", "collections", "functools", "tqdm", "matplotlib", "wandb"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Project:
    """The files of one run; lookups go through imports from file to file.

    `modules` are the files that are looked at. Those of a large library that do not train stand in
    the `background`: they are parsed only where a name leads to them.
    """

    modules: tuple[Module, ...]
    background: tuple[Module, ...] = ()
    documents: tuple[Source, ...] = ()  # configuration files beside them
    _bound: dict[ast.AST, dict[str, list[ast.expr]]] = field(default_factory=dict)
    _based: dict[ast.ClassDef, set[str]] = field(default_factory=dict)
    _held: dict[ast.ClassDef, dict[str, list[ast.expr]]] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, Module]:
        return {m.name: m for m in self.modules}

    @cached_property
    def set_aside(self) -> frozenset[Module]:
        """The files of the background."""
        return frozenset(self.background)

    def may_mention(self, word: str) -> bool:
        """Tell whether a file that nothing led to has a word in it."""
        return word in self._background_words

    @cached_property
    def _background_words(self) -> frozenset[str]:
        return frozenset(
            word for m in self.background if not m.is_parsed for word in re.findall(r"\w+", m.text)
        )

    @cached_property
    def training_modules(self) -> tuple[Module, ...]:
        """The files that may train with torch: neither tests nor another framework's code."""
        return tuple(m for m in self.modules if not m.is_test and not m.is_foreign)

    @cached_property
    def _by_stem(self) -> dict[str, list[tuple[tuple[str, ...], Module]]]:
        found: dict[str, list[tuple[tuple[str, ...], Module]]] = {}
        for module in (*self.modules, *self.background):
            parts = _import_path(module.path)
            found.setdefault(parts[-1], []).append((parts, module))
        return found

    def find_class(self, module: Module, name: str) -> tuple[Module, ast.ClassDef] | None:
        """Find the class a name means in a file: defined there, or imported from another file."""
        last = name.rsplit(".", 1)[-1]
        passed_on: list[Module] = []
        for candidate in self._homes(module, name):
            if last in candidate.classes:
                return candidate, candidate.classes[last]
            if candidate is not module and last in candidate.aliases:
                passed_on.append(candidate)  # a package's __init__ that imports it
        for candidate in passed_on:
            for home in self._homes(candidate, last):
                if last in home.classes:
                    return home, home.classes[last]
        return None

    def find_function(self, module: Module, name: str) -> tuple[Module, Function] | None:
        """Find the function a dotted name means in a file."""
        last = name.rsplit(".", 1)[-1]
        for candidate in self._homes(module, name):
            for wanted in (name, last):
                if wanted in candidate.functions:
                    return candidate, candidate.functions[wanted]
        return None

    def _homes(self, module: Module, name: str) -> Iterator[Module]:
        """The files in which a name may be defined: an imported one names its file."""
        imported = module.aliases.get(name.split(".", 1)[0])
        if imported is None and "." not in name:
            yield module
            return
        if imported is None:
            dotted = name.split(".")
        else:
            dotted = [*imported.split("."), *name.split(".")[1:]]
        for end in range(len(dotted), 0, -1):
            yield from self.files_called(tuple(dotted[:end]))
        yield module

    def files_called(self, dotted: tuple[str, ...], *, whole: bool = False) -> Iterator[Module]:
        """The files that an import of that dotted name may mean; `whole`: every part is a folder.

        Else the first parts may name folders above those that were read.
        """
        for parts, module in self._by_stem.get(dotted[-1], ()):
            if whole and len(parts) < len(dotted):
                continue
            shared = min(len(parts), len(dotted))
            is_library = dotted[0] in LIBRARIES and dotted[0] not in parts
            if parts[-shared:] == dotted[-shared:] and not is_library:
                yield module

    def bases(self, module: Module, node: ast.ClassDef) -> set[str]:
        """Return the dotted names of all base classes, through the files of the project."""
        if node not in self._based:
            self._based[node] = self._find_bases(module, node)
        return self._based[node]

    def _find_bases(self, module: Module, node: ast.ClassDef) -> set[str]:
        found: set[str] = set()
        pending = [(module, node)]
        seen: set[ast.ClassDef] = set()
        while pending:
            home, cls = pending.pop()
            if cls in seen:
                continue
            seen.add(cls)
            for base in cls.bases:
                name = home.qualified(base.value if isinstance(base, ast.Subscript) else base)
                if name is None:
                    continue
                found.add(name)
                parent = self.find_class(home, name)
                if parent is not None:
                    pending.append(parent)
        return found

    def is_module(self, module: Module, node: ast.ClassDef) -> bool:
        """Tell whether a class is a torch module, a Lightning one included."""
        names = self.bases(module, node)
        return any(n in MODULE_BASES or n.endswith(".nn.Module") for n in names) or (
            self.is_lightning(module, node)
        )

    def is_lightning(self, module: Module, node: ast.ClassDef) -> bool:
        """Tell whether the framework drives this class's training."""
        return any(n.rsplit(".", 1)[-1] == "LightningModule" for n in self.bases(module, node))

    def bindings(self, scope: ast.AST) -> dict[str, list[ast.expr]]:
        """Return what is ever assigned to each name in a scope, nested scopes left out."""
        if scope not in self._bound:
            self._bound[scope] = _collect_bindings(scope)
        return self._bound[scope]

    def lookup(self, module: Module, at: ast.AST, key: str) -> list[ast.expr]:
        """Return every value that a name may hold at a place: local, enclosing, class, global."""
        if key.startswith("self."):
            cls = module.class_of(at)
            return [] if cls is None else self._attributes(module, cls).get(key, [])
        for scope in [at, *module.enclosing(at)]:
            if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
                found = self.bindings(scope).get(key)
                if found:
                    return found
                if not isinstance(scope, ast.Module) and key in _parameters(scope):
                    return []
        return []

    def _attributes(self, module: Module, cls: ast.ClassDef) -> dict[str, list[ast.expr]]:
        if cls in self._held:
            return self._held[cls]
        merged = self._held.setdefault(cls, {})  # also ends a circle of base classes
        for node in ast.walk(cls):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for key, values in self.bindings(node).items():
                    if key.startswith("self."):
                        merged.setdefault(key, []).extend(values)
        for base in cls.bases:
            parent = self.find_class(module, module.qualified(base) or "")
            if parent is not None and parent[1] is not cls:
                for key, values in self._attributes(*parent).items():
                    merged.setdefault(key, list(values))
        return merged


def _import_path(path: str) -> tuple[str, ...]:
    split = path.replace("\\", "/").removesuffix(".py").split("/")
    parts = [p for p in split if p not in ("", ".")]
    if parts[-1:] == ["__init__"] and len(parts) > 1:
        parts = parts[:-1]
    return tuple(parts or [path])


def _parameters(function: Function) -> set[str]:
    spec = function.args
    return {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}


def _collect_bindings(scope: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in _own_nodes(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(target, node.value, found)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            _bind(node.target, node.value, found)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    _bind(item.optional_vars, item.context_expr, found)
    return found


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope in order, without those of functions and classes inside it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _own_nodes(child)


def _bind(target: ast.expr, value: ast.expr, found: dict[str, list[ast.expr]]) -> None:
    if isinstance(target, (ast.Tuple, ast.List)):
        values = _unpacked(value, len(target.elts))
        for part, own in zip(target.elts, values, strict=True):
            _bind(part, own, found)
        return
    key = key_of(target)
    if key is not None and not isinstance(target, ast.Subscript):
        found.setdefault(key, []).append(value)


def _unpacked(value: ast.expr, count: int) -> Sequence[ast.expr]:
    """The parts of a value that is unpacked; `a, b = prepare(a, b)` keeps its order."""
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == count:
        return value.elts
    if isinstance(value, ast.Call) and len(value.args) == count and _is_preparing(value):
        return value.args
    return [value] * count


def _is_preparing(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name in {"prepare", "setup", "setup_dataloaders", "prepare_model"}


def project_of(run: Run) -> Project:
    """Return the parsed source files of a run; parsed once however many detectors ask."""
    return _parse_all(run.sources, run.documents)


@lru_cache(maxsize=8)
def _parse_all(sources: tuple[Source, ...], documents: tuple[Source, ...]) -> Project:
    root = patch_root([source.path for source in sources], Path.cwd())
    modules = [Module(s.path, s.text, root) for s in sources]
    is_large = len(modules) > LARGE
    background = {m: None for m in modules if is_large and not _trains(m)}
    with paused_collector():
        looked_at = tuple(m for m in modules if m not in background and m.is_python)
    return Project(looked_at, tuple(background), documents)


def _trains(module: Module) -> bool:
    """Tell whether a file has code that trains; an example in a docstring is none."""
    if not any(word in module.text for word in TRAINING_WORDS):
        return False
    code = (line for line in module.lines if not line.lstrip().startswith(NO_CODE))
    return any(TRAINS.search(line) for line in code)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Keep the cycle collector from walking trees that stay: that takes longer than making them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def patch_root(paths: Sequence[str], here: Path) -> str:
    """Return the folder that patches are relative to, where paths are absolute or lead upwards.

    That is the current folder if it holds all files, for there `git apply` will be run, else the
    folder that the files have in common.
    """
    outside = [p for p in paths if Path(p).is_absolute() or ".." in Path(p).parts]
    if not outside:
        return ""
    if all(Path(p).is_relative_to(here) for p in outside):
        return str(here)
    return os.path.commonpath([str(Path(p).parent) for p in outside])
