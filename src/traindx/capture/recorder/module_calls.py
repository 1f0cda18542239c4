"""Listens to the calls of a module, and leaves no trace in what is made of the module.

A hook is a part of its module: it would be saved with it, copied, sent to other processes and
compiled by TorchScript. Ours is seen by the call of the module alone.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from torch import nn

Hook = Callable[[nn.Module, Any, Any], None]
_TABLES = ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs")


def listen(module: nn.Module, hook: Hook) -> Callable[[], None]:
    """Call a function before every call of a module; return what puts an end to it."""
    held = vars(module)
    if any(held.get(name, True) for name in _TABLES):
        # the handles of others point to these very tables
        remove: Callable[[], None] = module.register_forward_pre_hook(
            _Lone(hook), with_kwargs=True
        ).remove
        return remove
    tables = {name: _Table() for name in _TABLES}
    before = {name: held[name] for name in _TABLES}
    held.update(tables)
    handle = module.register_forward_pre_hook(hook, with_kwargs=True)
    for table in tables.values():
        table.ours = handle.id

    reference = weakref.ref(module)  # what ends it must not keep the model

    def end() -> None:
        handle.remove()
        heard = reference()
        held = {} if heard is None else vars(heard)
        if not any(tables.values()) and all(held.get(n) is tables[n] for n in _TABLES):
            held.update(before)

    return end


class _Table(OrderedDict[int, Any]):
    """The hooks of a module; the call of the module asks for items, and gets ours with the rest."""

    ours = -1

    def values(self) -> Any:
        """Return the hooks that TorchScript is to compile."""
        return self._others().values()

    def __reduce__(self) -> Any:
        return OrderedDict(self._others()).__reduce__()

    def _others(self) -> dict[int, Any]:
        return {number: hook for number, hook in self.items() if number != self.ours}


class _Lone:
    """A hook among those of others: where they are saved or copied, one that does nothing."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook

    def __call__(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._hook(module, args, kwargs)

    def __reduce__(self) -> Any:
        return getattr, (nullcontext(), "__exit__")
