"""Which functions do anything that a rule may ask about, as far as their text tells."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

from traindx.analysis.program.syntax import Function, Module

TELLING = re.compile(
    r"backward|\.step\(|zero_grad|optim|[lL]oss|criterion|[lL]oader|\.eval\(|\.train\(|no_grad|save|"
    r"state_dict|checkpoint|forward|__init__|nn\.|torch\.|F\.|random|seed|transform|split|scaler|np\.|"
    r"argmax|\.item\(|[bB]atch|collate|pad_|label|target|shuffle|__getitem__|__next__"
)
LIBRARIES = frozenset({"torch", "numpy", "random"})


@lru_cache(maxsize=65536)
def is_told(module: Module, function: Function) -> bool:
    """Tell whether a function does anything that a rule may ask about, or calls one that does."""
    own = _telling_names(module)
    lines = _lines_of(module, function)[1:]
    return _is_telling(module, function) or (
        own is not None and any(own.search(line) for line in lines)
    )


def _is_telling(module: Module, function: Function) -> bool:
    libraries = _library_names(module)
    return any(
        TELLING.search(line) or (libraries is not None and libraries.search(line))
        for line in _lines_of(module, function)
    )


def _lines_of(module: Module, function: Function) -> Sequence[str]:
    return module.lines[function.lineno - 1 : function.end_lineno or function.lineno]


@lru_cache(maxsize=1024)
def _telling_names(module: Module) -> re.Pattern[str] | None:
    """What finds a call of the functions of a file that do something to be asked about."""
    tops = (n for n in module.tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    found = [re.escape(n.name) for n in tops if _is_telling(module, n)]
    return re.compile(rf"\b(?:{'|'.join(found)})\(") if found else None


@lru_cache(maxsize=1024)
def _library_names(module: Module) -> re.Pattern[str] | None:
    """What finds the names under which a file imports torch, whatever they are."""
    found = [n for n, home in module.aliases.items() if home.split(".")[0] in LIBRARIES]
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, found))})\b") if found else None
