"""Runs scripts one after the other, each in a fork of a process that has torch imported already.

    python -m bench.corpus.forks MODULES

Reads one JSON object a line: `folder` to run in, `script`, `log`, `environment`, `ranks`,
`timeout_s`; answers with `code` and `seconds` of computing. What the script prints goes to the
log as it would to a terminal: in lines.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import resource
import signal
import sys
import time
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

TICK_S = 0.01
GRACE_S = 10.0
CPU_LIMIT_S = 60  # of computing, for the machine may be busy with other things


def main() -> None:
    for name in sys.argv[1].split(","):
        importlib.import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(attend(json.loads(line))), flush=True)


def attend(job: dict[str, Any]) -> dict[str, Any]:
    """Run one script, in as many ranks as it has, to its end or to its time limit."""
    start = time.perf_counter()
    running, codes, seconds = {}, [], 0.0
    store = open_meeting(job) if job["ranks"] > 1 else None
    for rank in range(int(job["ranks"])):
        pid = os.fork()
        if pid == 0:
            os._exit(become(job, rank))
        running[pid] = rank
    end = start + float(job["timeout_s"])
    while running and time.perf_counter() < end:
        for pid in list(running):
            done, status, used = os.wait4(pid, os.WNOHANG)
            if done:
                del running[pid]
                seconds += used.ru_utime + used.ru_stime
                codes.append(os.waitstatus_to_exitcode(status))
                # Ranks end together; a forked one may hang as it leaves its process group.
                end = min(end, time.perf_counter() + GRACE_S)
        time.sleep(TICK_S)
    for pid in running:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    code = next((c for c in codes if c != 0), 0 if codes else None)
    del store
    is_late = code is None or code == -signal.SIGXCPU
    return {"code": None if is_late else code, "seconds": seconds}


def open_meeting(job: dict[str, Any]) -> object:
    """Open the store where ranks meet and tell them where; like a launcher's, it outlives them."""
    from torch.distributed import TCPStore

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    job["environment"].update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(store.port),
        WORLD_SIZE=str(job["ranks"]),
        TORCHELASTIC_USE_AGENT_STORE="True",
        TORCHELASTIC_RESTART_COUNT="0",
    )
    return store


def become(job: dict[str, Any], rank: int) -> int:
    """Run a script in this process as the interpreter would."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S + 5))
    os.chdir(job["folder"])
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(job["environment"])
    if job["ranks"] > 1:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    script = Path(job["folder"]) / job["script"]
    sys.argv = [job["script"]]
    sys.path[0] = job["folder"]
    module = types.ModuleType("__main__")
    module.__file__ = str(script)
    sys.modules["__main__"] = module
    code = 0
    try:
        exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), module.__dict__)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException as error:
        leave_no_frame(error)
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    with suppress(BaseException):
        atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def leave_no_frame(error: BaseException) -> None:
    """Take this file out of the traceback of an exception and of those that led to it."""
    chain: list[BaseException | None] = [error]
    while chain:
        current = chain.pop()
        if current is None:
            continue
        trace = current.__traceback__
        if trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            current.__traceback__ = trace.tb_next
        chain += [current.__cause__, current.__context__]


if __name__ == "__main__":
    main()
