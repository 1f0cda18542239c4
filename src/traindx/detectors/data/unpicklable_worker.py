"""Something had to be sent to a worker and could not be pickled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Failure, Frame, Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import (
    Culprit,
    explain,
    last_burst,
    make_failed_run,
    match_root,
    root_failure,
)
from traindx.source.module import argument

PICKLE = re.compile(
    r"Can't pickle (?:local object )?(?:<function )?['<]?([\w.<>]+)|cannot pickle '([\w.]+)' object"
    r"|Can't get local object '([\w.<>]+)'|can't pickle ([\w.]+) objects"
)
BOOTSTRAP = re.compile(
    r"An attempt has been made to start a new process before the\s+current process has finished "
    r"its bootstrapping phase|freeze_support\(\)"
)
FORK = re.compile(r"Cannot re-initialize CUDA in forked subprocess")
_STARTS_WORKER = re.compile(r"utils[\\/]data[\\/]dataloader\.py|_MultiProcessingDataLoaderIter")
SPAWNING = re.compile(r"multiprocessing[\\/](?:reduction|popen_spawn_win32)\.py")
GETS = re.compile(r"Can't get attribute '(\w+)' on <module '__main__'")


@detector(needs=("failure",), suggests=("api-misuse", "worker-crash"))
def check(run: Run) -> Iterator[Finding]:
    """A worker process cannot be started or cannot be given what it needs.

    ## What it detects
    "Can't pickle <lambda>", "cannot pickle '_thread.lock' object", "An attempt has been made to
    start a new process before the current process has finished its bootstrapping phase" (the
    `__main__` guard is missing) and "Cannot re-initialize CUDA in forked subprocess".

    ## Why it matters
    On Windows, macOS and from Python 3.14 workers are started anew and get the dataset by pickling,
    so that code which ran on Linux fails.

    ## What to do
    Use functions of the module in place of lambdas, open files and connections inside of the
    worker, guard the script with `if __name__ == "__main__":`, and touch CUDA only in the main
    process.

    ## When it is wrong
    The same message comes from saving a model with a lambda in it: then save its state dict.
    """
    hit = match_root(run, BOOTSTRAP, FORK, PICKLE, GETS)
    if hit is None:
        yield from _cut_off(run)
        return
    failure, found = hit
    what = next((g for g in found.groups() if g), "") if found.re in (PICKLE, GETS) else ""
    if found.re is BOOTSTRAP:
        claim = 'Workers start the script again: it has no guard if __name__ == "__main__"'
    elif found.re is FORK:
        claim = "CUDA is used in a forked worker: the dataset makes or moves tensors to the GPU"
    else:
        claim = f"{what.rstrip('>') + '>' if what.startswith('<') else what} cannot be pickled"
        claim = f"What a worker is to get, {claim}"
    culprit = _culprit(run, what) if found.re is PICKLE else None
    guesses = {"api-misuse": Strength.STRONG, "worker-crash": Strength.WEAK}
    if any(_STARTS_WORKER.search(f"{f.file} {f.code}") for f in failure.frames):
        guesses = {"worker-crash": Strength.STRONG, "api-misuse": Strength.WEAK}
    yield explain(run, failure, claim, suggests=guesses, culprit=culprit)


def _cut_off(run: Run) -> Iterator[Finding]:
    """The pipe to a process that was being started broke: it ended before it could read."""
    failure = root_failure(run)
    if failure is None or failure.type != "BrokenPipeError":
        return
    if any(SPAWNING.search(f.file) for f in failure.frames[-2:]):
        claim = "A worker ended while it was started: without a main guard it runs the script anew"
        guesses = {"worker-crash": Strength.STRONG, "api-misuse": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)


def _culprit(run: Run, what: str) -> Culprit | None:
    """The lambda that a loader with workers would have to send."""
    if "lambda" not in what or not last_burst(run):
        return None
    for module in project_of(run).modules:
        for call, name in module.calls():
            if name.rsplit(".", 1)[-1] != "DataLoader":
                continue
            for option in ("collate_fn", "worker_init_fn", "batch_sampler"):
                given = argument(call, option)
                if isinstance(given, ast.Lambda):
                    return Culprit(module, given, f"{option} is a lambda, which has no name")
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Lambda):
                return Culprit(module, node, "a lambda has no name to be found by")
    return None


FIRES = {
    "a lambda": make_failed_run(
        "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'",
        "for x in loader:",
        sources={
            "t.py": "loader = DataLoader(d, collate_fn=lambda b: b)\nfor x in loader:\n    x\n"
        },
    ),
    "a lock": make_failed_run("TypeError: cannot pickle '_thread.lock' object"),
    "no guard, seen from the parent": make_run(
        failures=[
            Failure(
                "BrokenPipeError",
                "[Errno 32] Broken pipe",
                "train.log",
                "line 9",
                (
                    Frame("train.py", 9, "<module>", "for x in loader:"),
                    Frame("C:\\conda\\lib\\multiprocessing\\reduction.py", 60, "dump"),
                ),
            )
        ]
    ),
    "no guard": make_failed_run(
        "RuntimeError: An attempt has been made to start a new process before the\n        current "
        "process has finished its bootstrapping phase."
    ),
}

SILENT = {
    "near miss: a pipe of the shell": make_run(
        failures=[Failure("BrokenPipeError", "[Errno 32] Broken pipe", "t.log", "line 9", ())]
    ),
    "near miss: unpickling a checkpoint": make_failed_run(
        "_pickle.UnpicklingError: Weights only load failed."
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
