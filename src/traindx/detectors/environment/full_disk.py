from traindx.analysis.errors.environment_messages import FULL_DISK
from traindx.analysis.errors.messages import finding, known_error, logged
from traindx.examples import Event, failed, make_run
from traindx.registry import Findings, Run, detector


@detector(needs=("failure|events",), suggests=("disk-full",))
def check(run: Run) -> Findings:
    """The disk or the quota is full.

    ## What it detects
    "No space left on device" and "Disk quota exceeded", as the error that ended the run or as a
    line of its log.

    ## Why it matters
    The checkpoint that was being written is damaged, and metrics may be missing from then on.

    ## What to do
    Delete old checkpoints, keep only the last few, and check `df -h` and `df -i` of the folder and
    of /tmp.

    ## When it is wrong
    Inodes can run out while there is space left; the message is the same.
    """
    known = known_error(run, FULL_DISK)
    if known is not None:
        yield finding(known)
        return
    for event in [e for e in run.events if e.kind == "disk-full"][:1]:
        claim = "The log says that the disk is full"
        yield logged(event, claim, cause="disk-full")


_EVENT = Event("disk-full", "OSError: No space left on device", "train.log", "line 9")

FIRES = {
    "a write": failed(
        "OSError: [Errno 28] No space left on device: 'ckpt/last.pt'", "torch.save(state, path)"
    ),
    "a line of the log": make_run(events=[_EVENT]),
}

SILENT = {
    "near miss: shared memory": failed("OSError: No space left on device: '/dev/shm/torch_1'"),
    "another error": failed("FileNotFoundError: [Errno 2] No such file or directory: 'a'"),
}
