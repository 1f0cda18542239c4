"""A process that has imported torch and waits; each rerun is a fork of it, from the same start.

Importing torch takes longer than many a rerun. Run as a script by the user's interpreter, with a
socket as its only argument: a request is a line of JSON and the descriptor for the output; what is
told of a child is its number, and later how it ended. Standard library only, until torch.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOOK_S = 0.05
MOST = 4 << 20  # bytes of a request


def warm_up() -> None:
    """Import what every rerun is going to need."""
    import torch

    weight = torch.nn.Parameter(torch.zeros(2))
    torch.optim.SGD([weight], lr=0.1).step()  # imports what optimizers need
    import torch.utils.data


def serve(line: socket.socket) -> dict[str, Any]:
    """Fork for each request; return in the child, with what it is to run."""
    while True:
        ready, _, _ = select.select([line], [], [], LOOK_S)
        if ready:
            data, outlets, _, _ = socket.recv_fds(line, MOST, 1)
            if not data:
                os._exit(0)  # whoever asked is gone
            pid = os.fork()
            if pid == 0:
                line.close()
                return {**json.loads(data), "outlet": outlets[0]}
            os.close(outlets[0])
            tell(line, {"pid": pid})
        reap(line)


def reap(line: socket.socket) -> None:
    """Tell how children ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        tell(line, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def tell(line: socket.socket, told: dict[str, Any]) -> None:
    """Send a line."""
    try:
        line.sendall(json.dumps(told).encode() + b"\n")
    except OSError:
        os._exit(0)


def become(asked: dict[str, Any]) -> None:
    """Take the place of a process that was started afresh: session, output, environment, paths."""
    os.setsid()
    silence = os.open(os.devnull, os.O_RDONLY)
    os.dup2(silence, 0)
    os.dup2(asked["outlet"], 1)
    os.dup2(asked["outlet"], 2)
    os.close(asked["outlet"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    os.chdir(asked["cwd"])
    sys.argv[:] = asked["argv"]
    paths = [p for p in asked["environ"].get("PYTHONPATH", "").split(os.pathsep) if p]
    sys.path[:] = [os.path.dirname(os.path.abspath(asked["argv"][0])), *paths, *sys.path[1:]]


def arm(injected: str) -> None:
    """Load what is loaded at the start of every rerun, and what waits for torch to be imported."""
    from importlib.util import module_from_spec, spec_from_file_location

    place = os.path.join(injected, "sitecustomize.py")
    spec: Any = spec_from_file_location("traindx_sitecustomize", place)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, module.TorchImport)]
    module._arm()


def program_of(script: str) -> tuple[Any, dict[str, Any]]:
    """Return the code of a script, and the module that it runs in."""
    path = os.path.abspath(script)
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    return code, main.__dict__


if __name__ == "__main__":
    warm_up()
    own = socket.socket(fileno=int(sys.argv[1]))
    tell(own, {"ready": os.getpid()})
    request = serve(own)
    become(request)
    arm(request["injected"])
    exec(*program_of(request["argv"][0]))
