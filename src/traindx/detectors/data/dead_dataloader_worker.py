from traindx.analysis.errors.loader_messages import DEAD_WORKER
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("worker-crash", "host-memory-growth"))
def check(run: Run) -> Findings:
    """A data loader worker died or never answered.

    ## What it detects
    "DataLoader worker (pid 123) is killed by signal: Killed", "exited unexpectedly" and a loader's
    timeout, as long as no exception of the worker itself is in the log: that one is explained
    instead.

    ## Why it matters
    The main process only sees that the worker is gone; SIGKILL is nearly always the host's
    out-of-memory killer, a segmentation fault a library that does not survive a fork.

    ## What to do
    Run one epoch with `num_workers=0`: an exception then shows itself. Watch the host's memory.

    ## When it is wrong
    A worker that ends because the main process was stopped is a consequence.
    """
    yield from findings(run, DEAD_WORKER)


FIRES = {
    "killed": failed(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Killed.",
        "for batch in loader:",
    ),
    "gone": failed("RuntimeError: DataLoader worker (pid(s) 11, 12) exited unexpectedly"),
    "a segmentation fault": failed(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Segmentation fault."
    ),
}

SILENT = {
    "near miss: shared memory": failed(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Bus error."
    ),
    "another error": failed("KeyError: 'label'"),
}
