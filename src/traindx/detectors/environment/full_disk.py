"""A write failed for lack of space."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_event
from traindx.model import Event, Run, make_run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

MESSAGE = re.compile(
    r"No space left on device(?!: '?/dev/shm)|Disk quota exceeded|\[Errno (?:28|122)\]"
    r"|database or disk is full|There is not enough space on the disk"
)


@detector(needs=("failure|events",), suggests=("disk-full",))
def check(run: Run) -> Iterator[Finding]:
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
    hit = match_root(run, MESSAGE)
    if hit is not None:
        path = re.search(r"'([^']+)'", hit[0].message)
        where = f" while writing {path[1]}" if path is not None else ""
        yield explain(run, hit[0], f"The disk is full{where}", shows="disk-full")
        return
    for event in [e for e in run.events if e.kind == "disk-full"][:1]:
        yield Finding(
            claim="The log says that the disk is full",
            strength=Strength.STRONG,
            evidence=(cite_event(event),),
            shows="disk-full",
            is_symptom=True,
            onset=event.step,
        )


_EVENT = Event("disk-full", "OSError: No space left on device", "train.log", "line 9")

FIRES = {
    "a write": make_failed_run(
        "OSError: [Errno 28] No space left on device: 'ckpt/last.pt'", "torch.save(state, path)"
    ),
    "a line of the log": make_run(events=[_EVENT]),
}

SILENT = {
    "near miss: shared memory": make_failed_run(
        "OSError: No space left on device: '/dev/shm/torch_1'"
    ),
    "another error": make_failed_run("FileNotFoundError: [Errno 2] No such file or directory: 'a'"),
}
