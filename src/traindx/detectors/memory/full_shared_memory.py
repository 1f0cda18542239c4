"""Workers ran out of shared memory or of file handles to it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, root_failure

STATED = re.compile(
    r"insufficient shared memory|out of shared memory|killed by signal: Bus error"
    r"|unable to (?:mmap|open shared memory object|resize file|write to file|allocate shared)"
    r".{0,60}(?:torch_|shm|shared)|No space left on device: '?/dev/shm",
    re.IGNORECASE | re.DOTALL,
)
HANDLES = re.compile(
    r"Too many open files|received 0 items of ancdata|unable to open shared memory"
)


@detector(needs=("failure",), suggests=("shared-memory-exhausted", "worker-crash"))
def check(run: Run) -> Iterator[Finding]:
    """Data loader workers run out of shared memory.

    ## What it detects
    A worker killed by a bus error, "insufficient shared memory (shm)", "unable to mmap", "unable
    to open shared memory object", "received 0 items of ancdata" and "Too many open files".

    ## Why it matters
    Workers hand tensors over through /dev/shm, of which a container has 64 MB by default; and each
    tensor takes a file handle.

    ## What to do
    Start the container with `--shm-size=8g` or `--ipc=host`, or use fewer workers. For file handles
    raise `ulimit -n`, or call `torch.multiprocessing.set_sharing_strategy("file_system")`.

    ## When it is wrong
    "Too many open files" may also come from files that the dataset opens and never closes.
    """
    failure = root_failure(run)
    if failure is None:
        return
    if STATED.search(failure.message) or failure.type == "BusError":
        claim = "A data loader worker found no room in shared memory"
        yield explain(run, failure, claim, shows="shared-memory-exhausted")
    elif HANDLES.search(failure.message):
        claim = "The process has no file handle left, of which every shared tensor takes one"
        guesses = {"shared-memory-exhausted": Strength.STRONG, "worker-crash": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)


FIRES = {
    "a bus error": make_failed_run(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Bus error. It is possible "
        "that dataloader's workers are out of shared memory. Please try to raise your shared "
        "memory limit."
    ),
    "file handles": make_failed_run("OSError: [Errno 24] Too many open files"),
}

SILENT = {
    "near miss: a worker killed for memory": make_failed_run(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Killed."
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
