from traindx.analysis.errors.memory_messages import SHARED_MEMORY
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("shared-memory-exhausted", "worker-crash"))
def check(run: Run) -> Findings:
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
    yield from findings(run, SHARED_MEMORY)


FIRES = {
    "a bus error": failed(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Bus error. It is possible "
        "that dataloader's workers are out of shared memory. Please try to raise your shared "
        "memory limit."
    ),
    "file handles": failed("OSError: [Errno 24] Too many open files"),
}

SILENT = {
    "near miss: a worker killed for memory": failed(
        "RuntimeError: DataLoader worker (pid 4311) is killed by signal: Killed."
    ),
    "another error": failed("KeyError: 'label'"),
}
