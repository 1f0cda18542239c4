"""Which of several exceptions to explain.

A crash leaves several exceptions behind: the one that matters, those that wrap or handle it, and
those of other ranks that waited in vain. `root_failure` picks the one to explain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from traindx.model.run import Failure, Run
from traindx.tracebacks import own_frames

BURST_LINES = 200  # between two exceptions of one crash; the ranks of a large job fill that much
FRAME_LINES = 3  # a frame, its code, its markers
SURVIVED_POINTS = 5  # values logged after an exception: it was caught, the run went on
CHAIN_LINES = 6
ECHO = re.compile(
    r"""Connection\ (?:closed|reset)\ by\ peer|Watchdog\ caught\ collective|Timed\ out\ waiting
    |timed\ out\ in\ blocking\ wait|communicator\ (?:was|is)\ aborted|remote\ process\ exited
    |ncclRemoteError|Socket\ Timeout|Broken\ pipe|NCCL\ watchdog|TCPStore.{0,80}(?:recv|sendBytes)
    |failed\ to\ recv,\ got\ 0\ bytes|exited\ unexpectedly|signal:\ Terminated
    |Process\ \d+\ got\ signal|HeartbeatMonitor|wait\ timeout\ after\ \d+ms
    |terminated\ with\ exit\ code|Trials\ did\ not\ complete|actor\ died\ unexpectedly""",
    re.VERBOSE,
)
ECHO_TYPES = frozenset({"ChildFailedError", "ProcessRaisedException", "ProcessExitedException"})
ASIDE = frozenset(
    {"BrokenPipeError", "ConnectionResetError", "KeyboardInterrupt", "SystemExit",
     "SignalException", "Aborted", "WorkerDeath"}
)  # fmt: skip
# raised and caught all the time inside of libraries
PROBES = frozenset(
    {"KeyError", "AttributeError", "ImportError", "ModuleNotFoundError", "StopIteration",
     "FileNotFoundError", "IndexError", "queue.Empty", "_queue.Empty"}
)  # fmt: skip
_NUMBER = re.compile(r"\d+")
_CLEANS_UP = re.compile(r"^_*(?:tear_?down|cleanup|clean_up|__exit__|__del__|shutdown)", re.I)


@lru_cache(maxsize=1)  # every detector of an error asks, of one run at a time
def last_burst(run: Run) -> tuple[Failure, ...]:
    """Return the exceptions that ended the run, in order; none if the run went on after them."""
    failures = run.failures
    if not failures or _points_after(run, failures[-1]) >= SURVIVED_POINTS:
        return ()
    start = len(failures) - 1
    while start and (
        _is_near(run, failures[start - 1], failures[start])
        or all(standing(f) for f in failures[start:])
    ):
        start -= 1
    return failures[start:]


def root_failure(run: Run) -> Failure | None:
    """Return the exception to explain: first in its chain, first rank in time, no mere echo."""
    burst = last_burst(run)
    if not burst:
        return None
    best = min(standing(f) for f in burst)
    candidates = [f for f in burst if standing(f) == best]
    named = next((f.rank for f in burst if last_part(f.type) == "ChildFailedError"), None)
    # the launcher's summary has no message: what a process itself wrote says more
    candidates = [f for f in candidates if last_part(f.type) not in ECHO_TYPES] or candidates
    of_rank = [f for f in candidates if f.rank == named is not None]
    candidates = of_rank or candidates
    first = candidates[0]
    for later in candidates[1:2]:
        if _is_probe(first, later):
            return later
    return first


def standing(failure: Failure) -> int:
    """Say how far an exception is from the cause: 0 itself, 1 an echo, 2 a mere side effect."""
    name = last_part(failure.type)
    if name in ASIDE or (name == "EOFError" and _is_between_processes(failure)):
        return 2
    return 1 if name in ECHO_TYPES or ECHO.search(failure.message) else 0


def _is_between_processes(failure: Failure) -> bool:
    return any("multiprocessing" in frame.file for frame in failure.frames)


def is_joining(failure: Failure) -> bool:
    """Tell whether an exception came while the process group was made, before the ranks met."""
    name = "init_process_group"
    return any(f.function == name or f"{name}(" in f.code for f in failure.frames)


def echoes(run: Run) -> tuple[Failure, ...]:
    """Return the exceptions of a crash that only follow from another rank's end."""
    return tuple(f for f in last_burst(run) if standing(f) == 1)


def _is_probe(first: Failure, later: Failure) -> bool:
    """Tell whether a library tried something in vain, and failed for good in what it did next."""
    is_linked = _start(later) - _end(first) <= CHAIN_LINES and later.rank == first.rank
    is_other = last_part(later.type) != last_part(first.type)
    is_probe = last_part(first.type) in PROBES and not own_frames(first)
    if any(_CLEANS_UP.search(frame.function) for frame in later.frames):
        return False  # what fails while it clears away hides the error that it cleared away after
    return is_linked and is_other and is_probe and bool(own_frames(later))


def _is_near(run: Run, first: Failure, later: Failure) -> bool:
    if first.artifact != later.artifact:
        return True  # the log of another rank: nothing says which came first
    if first.step is not None and later.step is not None and first.step != later.step:
        return False
    gap = _start(later) - _end(first)
    return gap <= BURST_LINES and not _is_logged_between(run, first, later)


def _line(failure: Failure) -> int:
    found = _NUMBER.search(failure.locator)
    return int(found[0]) if found else 0


def _start(failure: Failure) -> int:
    return _line(failure) - FRAME_LINES * len(failure.frames)


def _end(failure: Failure) -> int:
    return _line(failure) + failure.message.count("\n")


def _is_logged_between(run: Run, first: Failure, later: Failure) -> bool:
    low, high = _end(first), _start(later)
    return any(((s >= low) & (s <= high)).any() for s in _places(run, first.artifact))


def _points_after(run: Run, failure: Failure) -> int:
    return max((int((s > _line(failure)).sum()) for s in _places(run, failure.artifact)), default=0)


def _places(run: Run, artifact: str) -> list[Any]:
    found = run.series.values()
    return [s.places for s in found if s.origin.artifact == artifact and s.origin.unit == "line"]


def last_part(name: str) -> str:
    """Return an exception's own name, without its modules."""
    return name.split("(", 1)[0].replace("::", ".").rsplit(".", 1)[-1]


def match_root(
    run: Run, *patterns: re.Pattern[str], types: Iterable[str] = ()
) -> tuple[Failure, re.Match[str]] | None:
    """Return the failure to explain where its message fits one of the patterns."""
    failure = root_failure(run)
    wanted = frozenset(types)
    if failure is None or (wanted and last_part(failure.type) not in wanted):
        return None
    for pattern in patterns:
        found = pattern.search(failure.message)
        if found is not None:
            return failure, found
    return None


def first_line(failure: Failure, limit: int = 200) -> str:
    """Return an exception as its last line in a traceback reads."""
    message = failure.message.split("\n", 1)[0].strip()
    text = f"{last_part(failure.type)}: {message}" if message else last_part(failure.type)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def ranks_that_raised(run: Run, root: Failure) -> frozenset[int | None]:
    """The ranks that raised the same error themselves: the launcher's word on them is no echo."""
    says = first_line(root)
    burst = ((f.rank, first_line(f)) for f in last_burst(run) if not standing(f))
    # a recorder has the message without the suggestion that the interpreter prints after it
    return frozenset(r for r, s in burst if s.startswith(says) or says.startswith(s))


def is_raised_on_purpose(failure: Failure) -> bool:
    """Tell whether a check of the program or of a library raised it, with a message of its own."""
    last = failure.frames[-1:]
    if not last or not last[0].code.startswith("raise "):
        return False
    is_sentence = len(failure.message.split()) > 3  # and not the key that is missing
    return is_sentence or last[0] in own_frames(failure)


def is_in_worker(run: Run, failure: Failure) -> bool:
    """Tell whether a failure came out of a worker of a data loader."""
    near = (failure, *last_burst(run))
    is_named = any("DataLoader worker" in f.message for f in near)
    return is_named or any("collate" in frame.file for f in near for frame in f.frames)


def raised_from(failure: Failure, text: str) -> str:
    """Say where in the user's code a failure was raised."""
    frame = (own_frames(failure) or failure.frames)[-1:]
    return f"{text}, raised from {frame[0].file}:{frame[0].line}" if frame else text
