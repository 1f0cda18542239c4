from traindx.analysis.errors.culprits import explain
from traindx.analysis.errors.failing_lines import path_of
from traindx.analysis.errors.loader_messages import UNPICKLABLE
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.errors.root_failure import root_failure
from traindx.analysis.errors.written_calls import unpicklable_lambda
from traindx.examples import Frame, failed
from traindx.registry import Findings, Run, Strength, detector

STARTS = ("utils/data/dataloader.py", "_MultiProcessingDataLoaderIter")
SPAWNS = ("multiprocessing/reduction.py", "multiprocessing/popen_spawn_win32.py")
WORKER = {"worker-crash": Strength.STRONG, "api-misuse": Strength.WEAK}
MISUSE = {"api-misuse": Strength.STRONG, "worker-crash": Strength.WEAK}


@detector(needs=("failure",), suggests=("api-misuse", "worker-crash"))
def check(run: Run) -> Findings:
    """A worker process cannot be started, or an object cannot be sent to it.

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
    known = known_error(run, UNPICKLABLE)
    if known is None:
        yield from _cut_off(run)
        return
    name = known["name"]
    claim = known.claim(name=f"{name.rstrip('>')}>" if name.startswith("<") else name)
    is_lambda = known.kind == "pickle" and "lambda" in name
    culprit = unpicklable_lambda(run) if is_lambda else None
    starts = any(w in f"{path_of(f)} {f.code}" for f in known.failure.frames for w in STARTS)
    guesses = WORKER if starts else MISUSE
    yield finding(known, claim, suggests=guesses, culprit=culprit)


def _cut_off(run: Run) -> Findings:
    """The pipe to a process that was being started broke: it ended before it could read."""
    failure = root_failure(run)
    if failure is None or failure.type != "BrokenPipeError":
        return
    if any(path_of(f).endswith(SPAWNS) for f in failure.frames[-2:]):
        claim = 'A worker died at start; without if __name__ == "__main__" it reruns the script'
        yield explain(run, failure, claim, suggests=WORKER)


FIRES = {
    "a lambda": failed(
        "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'",
        "for x in loader:",
        sources={
            "t.py": "loader = DataLoader(d, collate_fn=lambda b: b)\nfor x in loader:\n    x\n"
        },
    ),
    "a lock": failed("TypeError: cannot pickle '_thread.lock' object"),
    "no guard, seen from the parent": failed(
        "BrokenPipeError: [Errno 32] Broken pipe",
        "for x in loader:",
        frames=(Frame("C:\\conda\\lib\\multiprocessing\\reduction.py", 60, "dump"),),
    ),
    "no guard": failed(
        "RuntimeError: An attempt has been made to start a new process before the\n        current "
        "process has finished its bootstrapping phase."
    ),
}

SILENT = {
    "near miss: a pipe of the shell": failed("BrokenPipeError: [Errno 32] Broken pipe"),
    "near miss: unpickling a checkpoint": failed(
        "_pickle.UnpicklingError: Weights only load failed."
    ),
    "another error": failed("KeyError: 'label'"),
}
