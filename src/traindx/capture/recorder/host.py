"""The process and the machine that training runs in."""

from __future__ import annotations

import functools
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

from . import places

FORMAT = 1
MAX_SOURCES = 300
_LAUNCHERS = frozenset(
    {"torchrun", "accelerate", "deepspeed", "torch.distributed.run", "torch.distributed.launch",
     "accelerate.commands.launch"}
)  # fmt: skip


def header() -> dict[str, Any]:
    """Return the record that a recording begins with."""
    number, world_size = rank()
    main = sys.modules.get("__main__")
    return {
        "v": FORMAT,
        "pid": os.getpid(),
        "rank": number,
        "world_size": world_size,
        "host": socket.gethostname(),
        "argv": [str(a)[:500] for a in sys.argv[:200]],
        "main": os.path.abspath(str(getattr(main, "__file__", "") or "")),
        "cwd": os.getcwd(),
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "started_s": time.time(),
    }


def is_launcher() -> bool:
    """Tell whether this process starts others and trains nothing itself."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    names = {os.path.basename(sys.argv[0] if sys.argv else ""), getattr(spec, "name", "")}
    return bool(names & _LAUNCHERS)


def is_from_a_signal(error: BaseException) -> bool:
    """Tell whether a signal handler of the program raised, while we happened to be at work."""
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def _code(handler: Any) -> Any:
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not hasattr(function, "__code__"):
        function = vars(type(function)).get("__call__")
    return getattr(function, "__code__", None)


def is_traced(given: list[Any], *, is_ours: bool = False) -> bool:
    """Tell whether a model is called to be written down: what we do would become a part of it.

    With `is_ours`, the only mode on the stack is one of the recorder's.
    """
    has_modes = bool(torch._C._len_torch_dispatch_stack()) and not is_ours
    if torch._C._get_tracing_state() is not None or has_modes:
        return True
    fx = sys.modules.get("torch.fx")
    return fx is not None and any(issubclass(type(value), fx.Proxy) for value in given)


def sources(taking_part: set[str] | None = None) -> list[str]:
    """Return the files of the user's code that this process has imported, or those taking part."""
    files = {
        os.path.abspath(file)
        for name, module in list(sys.modules.items())
        if (taking_part is None or name in taking_part)
        and (file := getattr(module, "__file__", None))
        and str(file).endswith(".py")
        and places.is_user_file(str(file))
        and os.path.isfile(file)
    }
    script = os.path.abspath(sys.argv[0] if sys.argv else "")  # at the end `__main__` has no file
    if taking_part is None and script.endswith(".py") and os.path.isfile(script):
        files |= {script} if places.is_user_file(script) else set()
    return sorted(files)[:MAX_SOURCES]


def reachable_modules(names: Iterable[str]) -> set[str]:
    """Return the modules that these ones use, directly or through others.

    A test session or a notebook server has imported code that this training never runs.
    """
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in found or not isinstance(module, ModuleType):
            continue
        found.add(name)
        if _is_users(module):
            waiting += [home for value in list(vars(module).values()) if (home := _home(value))]
    return found


def _is_users(module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    return isinstance(file, str) and places.is_user_file(file)


def _home(value: Any) -> str | None:
    """Return the name of the module that a value is, or that it or its class was defined in."""
    if isinstance(value, ModuleType):
        return value.__name__
    owner = value if isinstance(value, (type, FunctionType)) else type(value)
    home = getattr(owner, "__module__", None)
    return home if isinstance(home, str) else None


def modules_on_the_stack() -> set[str]:
    """Return the names of the modules whose functions are running now."""
    names = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        names.add(str(frame.f_globals.get("__name__")))
        frame = frame.f_back
    return names


def rank() -> tuple[int, int]:
    """Return the rank of this process, and of how many."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)


def memory() -> tuple[float | None, float | None]:
    """Return the bytes that this process holds for itself, on the host and on the device."""
    resident = None
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            _, pages, shared = (int(n) for n in file.read().split()[:3])
            resident = (pages - shared) * os.sysconf("SC_PAGE_SIZE")  # a mapped file is no growth
    except (OSError, ValueError):
        pass  # elsewhere than on Linux it is not known
    device = None
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        device = torch.cuda.memory_allocated()
    return resident, device
