from collections.abc import Sequence

from traindx.analysis.errors.culprits import cite_failure
from traindx.analysis.errors.environment_messages import ENDINGS, HOST_OUT_OF_MEMORY, OUT_OF_TIME
from traindx.analysis.errors.killed_processes import causes_of_kill, went_on
from traindx.analysis.errors.messages import (
    causes_in,
    events_saying,
    finding,
    known_error,
    logged,
    read,
)
from traindx.analysis.errors.root_failure import last_burst, root_failure, standing
from traindx.examples import failed, make_run
from traindx.model.run import Event, Failure
from traindx.registry import Finding, Findings, Run, Strength, detector

CRASHES = "Killed SegmentationFault FatalPythonError IllegalInstruction FloatingPointException"


@detector(needs=("failure|events",), suggests=(*causes_in(ENDINGS), "host-memory-growth"))
def check(run: Run) -> Findings:
    """The process was killed from outside, or crashed below Python.

    ## What it detects
    "Killed", exit code −9, SIGTERM, a scheduler's time limit or pre-emption, the kernel's
    out-of-memory killer; and segmentation faults, bus errors and aborts, also where only the
    launcher tells the exit code.

    ## Why it matters
    There is no traceback: nothing in the program raised an error. SIGKILL without another word is
    mostly the host running out of memory.

    ## What to do
    Read `dmesg -T` or the scheduler's record; log the resident memory. For a segmentation fault run
    with `python -X faulthandler`.

    ## When it is wrong
    Someone may have stopped the run by hand; and a launcher kills the other ranks after one failed.
    """
    failure = root_failure(run)
    said = list(_explained(run, failure)) if failure is not None else []
    yield from said
    if not run.failures:
        yield from _noted(run, [e for e in run.events if e.kind == "killed"])
    elif not said and failure is not None and standing(failure) == 1:
        # it only says that a process is gone; whose memory was full, the host says itself
        killed = [e for e in events_saying(run, HOST_OUT_OF_MEMORY) if e.kind == "killed"]
        yield from _noted(run, killed)


def _explained(run: Run, failure: Failure) -> Findings:
    others = (f for f in last_burst(run) if standing(f) == 0 and f.type not in CRASHES.split())
    known = known_error(run, ENDINGS, failure) if not any(others) else None
    if known is None:
        return
    if known.kind == "killed":
        claim = known.claim(rank="" if failure.rank is None else str(failure.rank))
        yield finding(known, claim, suggests=causes_of_kill(run, failure))
    elif known.kind == "stopped" and run.recording is not None:
        cited = (cite_failure(run, failure),)  # by whom, its own launcher or user, is not known
        yield Finding(claim=known.claim(), strength=Strength.WEAK, evidence=cited)
    else:
        yield finding(known)


def _noted(run: Run, events: Sequence[Event]) -> Findings:
    """A log without any error, whose last event is a kill; of a recording, its end tells more."""
    killed = [e for e in events if e.locator != "signal"]
    for event in killed[-1:]:
        if went_on(run, event):
            continue
        is_memory = read(event.text, HOST_OUT_OF_MEMORY) and not read(event.text, OUT_OF_TIME)
        cause = "host-memory-growth" if is_memory else "killed-by-host"
        claim = "The log says that the process was killed from outside"
        yield logged(event, claim, suggests={cause: Strength.STRONG})


_TIME = Event("killed", "slurmstepd: error: JOB 12 CANCELLED DUE TO TIME LIMIT", "a.log", "line 9")

FIRES = {
    "killed": failed("Killed: Killed"),
    "in the launcher's summary": failed(
        "ChildFailedError: rank      : 1 (local_rank: 1)\nexitcode  : -9 (pid: 12)\ntraceback : "
        "Signal 9 (SIGKILL) received by PID 12",
        rank=1,
    ),
    "in a launcher's last line": failed(
        "ProcessExitedException: A process ended with exitcode: -9"
    ),
    "a bus error": failed("ProcessExitedException: A process ended with exitcode: -7"),
    "the scheduler": make_run(events=[_TIME]),
    "a crash": failed("SegmentationFault: Segmentation fault (core dumped)"),
}

SILENT = {
    "near miss: another rank's error came first": make_run(
        failures=[
            failed("KeyError: 'label'", "y = b['label']", rank=0).failures[0],
            failed("ChildFailedError: exitcode  : -9 (pid: 12)", rank=1).failures[0],
        ]
    ),
    "near miss: a process that ended by itself": failed(
        "ProcessExitedException: A process ended with exitcode: 1"
    ),
    "no error": make_run({"loss/train": [1.0, 0.5]}),
}
