"""A data loader worker died."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

KILLED = re.compile(r"DataLoader worker \(pid (\d+)\) is killed by signal: ([\w ]+)")
GONE = re.compile(
    r"DataLoader worker \(pid\(?s?\)? ([\d, ]+)\) exited unexpectedly(?: with exit code (-?\d+))?"
)
SLOW = re.compile(r"DataLoader timed out after (\d+(?:\.\d+)?) seconds")


@detector(needs=("failure",), suggests=("worker-crash", "host-memory-growth"))
def check(run: Run) -> Iterator[Finding]:
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
    hit = match_root(run, KILLED, GONE, SLOW)
    if hit is None or "Bus error" in hit[0].message:
        return
    failure, found = hit
    if found.re is SLOW:
        claim = f"No worker gave a batch within {found[1]} seconds: one hangs or is too slow"
        guesses = {"worker-crash": Strength.STRONG}
    elif found.re is KILLED and found[2].startswith("Killed"):
        claim = f"Data loader worker {found[1]} was killed by the host (SIGKILL)"
        guesses = {"host-memory-growth": Strength.STRONG, "worker-crash": Strength.WEAK}
    elif found.re is KILLED:
        claim = f"Data loader worker {found[1]} died of a signal: {found[2].strip()}"
        guesses = {"worker-crash": Strength.STRONG}
    else:
        code = f" with exit code {found[2]}" if found[2] else ""
        claim = f"Data loader worker {found[1].strip()} is gone{code} and left no message"
        guesses = {"worker-crash": Strength.STRONG, "host-memory-growth": Strength.WEAK}
    yield explain(run, failure, claim, suggests=guesses)


FIRES = {
    "killed": make_failed_run(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Killed.",
        "for batch in loader:",
    ),
    "gone": make_failed_run("RuntimeError: DataLoader worker (pid(s) 11, 12) exited unexpectedly"),
    "a segmentation fault": make_failed_run(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Segmentation fault."
    ),
}

SILENT = {
    "near miss: shared memory": make_failed_run(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Bus error."
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
