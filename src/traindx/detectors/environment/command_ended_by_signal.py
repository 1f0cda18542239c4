import re
from dataclasses import replace

from traindx.analysis.errors.root_failure import root_failure
from traindx.analysis.recordings.crashes import last_memory, signal_of
from traindx.analysis.recordings.ranks import own_places, place_words
from traindx.examples import Event, failed, recorded
from traindx.model.findings import Evidence, cite_event
from traindx.model.recording import Ending, Place, Process, Recording, Sample
from traindx.registry import Finding, Findings, Run, Strength, detector, finding, suggested

KILL = 9
CRASHES = {4: "illegal instruction", 6: "aborted", 7: "bus error", 8: "floating point exception",
           11: "segmentation fault"}  # fmt: skip
STOPS = {1: "SIGHUP", 10: "SIGUSR1", 12: "SIGUSR2", 15: "SIGTERM", 24: "SIGXCPU"}
MEMORY = re.compile(r"out[ -]of[ -]memory", re.IGNORECASE)
STACK_LINE = re.compile(r'^ *File "([^"\n]{1,500})", line (\d{1,7}) in (\S{1,200})', re.MULTILINE)


@detector(
    needs=("recording",),
    suggests=("killed-by-host", "host-memory-growth", "version-mismatch", "worker-crash"),
)
def check(run: Run) -> Findings:
    """The command was killed, crashed below Python, or was stopped.

    ## What it detects
    The signal that ended a recorded command, as its parent saw it: SIGKILL; a crash, with the line
    of the user's code that it happened in; SIGTERM and similar signals.

    ## Why it matters
    There is no traceback: nothing in the program raised an error. SIGKILL without another word is
    mostly the host running out of memory.

    ## What to do
    Read `dmesg -T` or the scheduler's record, and compare the memory in use with what the machine
    has. For a crash look at the call of the named line: a library that does not fit, or a pointer
    that is wrong.

    ## When it is wrong
    Someone may have killed the run by hand. Of a command that was asked to stop it is only said
    that it was, and an interrupt (Ctrl-C) is never reported.
    """
    recording = run.recording
    number = signal_of(recording) if recording is not None else None
    if recording is None or number is None or root_failure(run) is not None:
        return
    event = next((e for e in run.events if e.locator == "signal"), None)
    says = f"the command was ended by signal {number}"
    cited = cite_event(event) if event is not None else Evidence(says, "run.json", "signal")
    if number == KILL:
        is_memory = MEMORY.search(cited.says) is not None
        yield finding(
            "The command was killed with SIGKILL and left no error",
            {
                "host-memory-growth": Strength.STRONG if is_memory else Strength.WEAK,
                "killed-by-host": Strength.WEAK if is_memory else Strength.STRONG,
            },
            cited,
            *last_memory(recording),
        )
    elif number in CRASHES:
        yield _crash(recording, CRASHES[number], cited)
    elif number in STOPS:
        claim = f"The command was stopped from outside ({STOPS[number]})"
        yield finding(claim, {}, cited, strength=Strength.WEAK, is_symptom=False)


def _crash(recording: Recording, kind: str, cited: Evidence) -> Finding:
    text = recording.ending.last_stack if recording.ending is not None else ""
    # the thread that crashed comes first, or is marked; its innermost line comes first
    current = text[max(0, text.find("Current thread")) :].split("\n\n", 1)[0]
    places = [Place(m[1], int(m[2]), m[3]) for m in STACK_LINE.finditer(current)]
    place = next(iter(own_places(places) or places), None)
    where = f"{place_words(place)}, in {place.function}" if place is not None else ""
    claim = f"The command crashed below Python ({kind}){where}"
    return finding(
        claim, suggested(moderate="version-mismatch", weak="worker-crash"), cited, place=place
    )


_STACK = """Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/home/me/train.py", line 31 in load
"""
_TRAINED = Process(samples=(Sample(9, 100, rss_bytes=3e10),))
_SHORT = "the command was ended by SIGKILL; the out-of-memory killer struck"

FIRES = {
    "killed": recorded(_TRAINED, ending=Ending(signal=9)),
    "killed for lack of memory": replace(
        recorded(_TRAINED, ending=Ending(signal=9)),
        events=(Event("killed", _SHORT, "run.json", "signal"),),
    ),
    "killed below a shell": recorded(Process(), ending=Ending(exit_code=137)),
    "crashed": recorded(Process(), ending=Ending(signal=11, last_stack=_STACK)),
    "asked to stop": recorded(Process(), ending=Ending(signal=15)),
}

SILENT = {
    "near miss: interrupted": recorded(Process(), ending=Ending(signal=2)),
    "near miss: an exit code of the program's own": recorded(Process(), ending=Ending(exit_code=3)),
    "near miss: an error says more": replace(
        recorded(Process(), ending=Ending(signal=6)), failures=failed("KeyError: 'label'").failures
    ),
    "still running": recorded(Process(), ending=Ending(is_running=True)),
    "it ended well": recorded(Process(), ending=Ending(exit_code=0)),
}
