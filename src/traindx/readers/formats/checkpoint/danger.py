"""Which names in a pickle are needed for tensors, which only for objects, and which run code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# what torch.load(weights_only=True) admits; a test compares it with the installed torch
_ADMITTED = re.compile(
    r"torch\.(?:cuda\.)?(?:sparse\.)?\w+(?:Storage|Tensor)"
    r"|torch\.(?:b?float\d\w*|q?u?int\d\w*|bool|complex\d+|bits\w+|per_(?:tensor|channel)_\w+)"
    r"|torch\.(?:Size|device|Tensor)|torch\.storage\.(?:Typed|Untyped)Storage"
    r"|torch\.nn\.parameter\.Parameter"
    r"|torch\._utils\._rebuild_\w+|torch\._tensor\._rebuild_from_type_v2"
    r"|torch\.serialization\._get_layout"
    r"|collections\.(?:OrderedDict|Counter)|_codecs\.encode"
    r"|(?:builtins|__builtin__)\.(?:bytearray|complex|set)"
)

# modules that no checkpoint needs, whatever is taken from them
_MODULES = frozenset(
    {"os", "posix", "nt", "subprocess", "commands", "sys", "pty", "shutil", "socket", "runpy",
     "importlib", "imp", "ctypes", "_ctypes", "webbrowser", "pip", "ensurepip", "pdb", "bdb",
     "code", "codeop", "timeit", "cProfile", "profile", "trace", "marshal", "pickle", "_pickle",
     "shelve", "tempfile", "glob", "pkgutil", "requests", "urllib", "urllib2", "http", "httplib",
     "ftplib", "smtplib", "telnetlib", "xmlrpc", "aiohttp", "signal", "gc", "inspect", "platform",
     "doctest", "venv", "asyncio", "multiprocessing", "_posixsubprocess", "antigravity", "idlelib",
     "lib2to3", "sqlite3", "zipimport"}
)  # fmt: skip
_BUILTINS = frozenset(
    {"eval", "exec", "execfile", "compile", "open", "__import__", "input", "breakpoint", "setattr",
     "delattr", "globals", "locals", "vars", "apply", "file", "reload", "map", "filter"}
)  # fmt: skip
_FUNCTIONS = frozenset(
    {"types.CodeType", "types.FunctionType", "types.LambdaType", "types.MethodType",
     "operator.attrgetter", "operator.methodcaller", "_operator.attrgetter",
     "_operator.methodcaller", "functools.reduce", "torch.load", "torch.jit.load", "torch.hub.load",
     "torch.serialization.load", "numpy.load",
     "numpy.testing._private.utils.runstring", "torch.utils.cpp_extension.load_inline", "io.open",
     "io.open_code", "_io.open", "_io.FileIO", "io.FileIO", "codecs.open", "code.interact"}
)  # fmt: skip
# reached through another module, as in `torch.serialization.os.system`
_HIDDEN_MODULES = frozenset(
    {"os", "posix", "nt", "subprocess", "sys", "builtins", "__builtins__", "importlib", "ctypes"}
)
_HIDDEN_FUNCTIONS = frozenset(
    {"eval", "exec", "system", "popen", "Popen", "__import__", "__globals__", "__builtins__",
     "__subclasses__", "__getattribute__", "__code__", "__reduce__"}
)  # fmt: skip
COMPUTED = "(computed)"


@dataclass(frozen=True, slots=True)
class Names:
    """The globals of a pickle beyond those of tensors."""

    dangerous: tuple[str, ...]
    unsupported: tuple[str, ...]


def judge(names: Iterable[str]) -> Names:
    """Sort names into those that run code and those that are merely no tensors."""
    dangerous: list[str] = []
    unsupported: list[str] = []
    for name in names:
        if _ADMITTED.fullmatch(name):
            continue
        (dangerous if is_dangerous(name) else unsupported).append(name)
    return Names(tuple(dangerous), tuple(unsupported))


def is_dangerous(name: str) -> bool:
    """Tell whether a name gives a pickle power over the machine that loads it."""
    parts = name.split(".")
    if name == COMPUTED or parts[0] in _MODULES or name in _FUNCTIONS:
        return True
    if parts[0] in {"builtins", "__builtin__"}:
        return len(parts) > 2 or parts[-1] in _BUILTINS
    if parts[-1] in _HIDDEN_FUNCTIONS and parts[0] != "(object)":
        return True
    # a package of the user's may well have a module called `sys`; its classes begin upper-case
    return any(p in _HIDDEN_MODULES for p in parts[1:]) and not parts[-1][:1].isupper()
