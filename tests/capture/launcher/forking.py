"""Runs training programs one after the other, each in a fork of one process.

    python forking.py FOLDER MODULES PROGRAM[:ARGUMENT...] ...

MODULES, with commas, are imported once for all programs. What a program prints and its exit code
end up as `output.log`, `errors.log` and `exit_code` in a folder of its own below FOLDER. Where the
environment asks for a recording, it asks for FOLDER/now, and the recording is moved there too.
"""

from __future__ import annotations

import atexit
import importlib
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
INJECTED = Path(__file__).parents[3] / "src" / "traindx" / "capture" / "recorder" / "injected"
SHARED = "sklearn.datasets,sklearn.model_selection,sklearn.preprocessing,torch,torch._dynamo"


def fork_each(
    place: Path, programs: Sequence[str], *, modules: str = SHARED, is_recorded: bool = True
) -> None:
    """Run programs in forks of a process that starts as one below `traindx run` does."""
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    if is_recorded:
        surroundings["TRAINDX_RECORDING"] = str(place / "now")
        surroundings["PYTHONPATH"] = str(INJECTED)
    command = [sys.executable, __file__, str(place), modules, *programs]
    subprocess.run(command, env=surroundings, check=True)


def differences(plain: Path, recorded: Path) -> list[str]:
    """Say where recorded programs printed or ended otherwise than plain ones."""
    found = []
    for folder in sorted(plain.iterdir()):
        for file in ("output.log", "exit_code"):
            if (folder / file).read_bytes() != (recorded / folder.name / file).read_bytes():
                found.append(f"{folder.name}: another {file}")
    return found


def run(program: str, arguments: list[str]) -> int:
    """Run a program as the interpreter would, to its very end."""
    code = 0
    try:
        sys.argv = [str(PROGRAMS / program), *arguments]
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return code


def redirect(descriptor: int, path: Path) -> None:
    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)


def main(place: Path, modules: str, programs: list[str]) -> None:
    for name in modules.split(","):
        importlib.import_module(name)
    now = place / "now"
    for text in programs:
        program, *arguments = text.split(":")
        now.mkdir(parents=True, exist_ok=True)
        pid = os.fork()
        if pid == 0:
            redirect(1, now / "output.log")
            redirect(2, now / "errors.log")
            os.chdir(now)
            os._exit(run(program, arguments))
        _, status = os.waitpid(pid, 0)
        (now / "exit_code").write_text(str(os.waitstatus_to_exitcode(status)))
        now.rename(place / "-".join((program.removesuffix(".py"), *arguments)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
