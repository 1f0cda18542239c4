from collections.abc import Sequence
from dataclasses import replace

from traindx.analysis.recordings.rank_calls import (
    Call,
    early_end,
    first_disagreement,
    missing_rank,
)
from traindx.analysis.recordings.ranks import (
    Standstill,
    operation_words,
    place_words,
    standstills,
)
from traindx.examples import Caught, Counts, Ending, Place, Process, Stall, recorded
from traindx.registry import Finding, Findings, Run, Strength, detector, finding, suggested


@detector(
    needs=("recording",),
    suggests=("collective-mismatch", "uneven-inputs", "worker-crash", "data-loading-bound",
              "checkpoint-overhead"),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The ranks stand still, and one is not where the others wait for it.

    ## What it detects
    Ranks that made no progress to the end of the recording, whose flight recorders disagree: one
    never called a collective that others wait in, or they called different operations, or the same
    with different shapes. Names the rank, the operation, and the line at which each rank stands.
    Also a rank that came to its end while others still wait for it.

    ## Why it matters
    A collective ends only when all ranks have called it. The ranks that wait are not at fault; the
    line to read is that of the rank that is elsewhere.

    ## What to do
    Let every rank make the same calls in the same order: no collective within `if rank == 0`, no
    early `continue`, one decision that is broadcast to all.

    ## When it is wrong
    A rank that merely takes long looks the same until it comes; a pause that ended is not
    reported. If all ranks wait in the same collective, the network or a lost process is to blame,
    and nothing is said here.
    """
    still = [s for s in standstills(run) if s.process.world_size > 1]
    groups = {str(c.get("group", "")) for s in still for c in s.calls}
    for group in sorted(groups):
        members = [s for s in still if s.last_call(group) >= 0]
        found = _disagreement(members, group) or _absence(members, group)
        if found is not None:
            yield found
            return
    ended = early_end(run)
    if ended is None or ended.gone.counts is None:
        return
    guesses = suggested(moderate="collective-mismatch uneven-inputs")
    gone, is_even, steps = ended.gone, ended.has_as_many_batches, ended.gone.counts.steps
    yield finding(
        f"Rank {gone.rank} ended after {steps} steps, and rank {ended.whom.rank} still waits for "
        f"it{place_words(ended.place)}",
        "collective-mismatch" if is_even else guesses,
        *ended.evidence,
        against={"uneven-inputs": Strength.STRONG} if is_even else {},
        onset=steps,
        place=ended.place,
    )


def _disagreement(members: Sequence[Standstill], group: str) -> Finding | None:
    found = first_disagreement(members, group)
    if found is None:
        return None
    said = (f"rank {s.process.rank} called {operation_words(call)}" for s, call in found)
    claim = f"The ranks called different collectives: {' and '.join(said)}"
    return _shown(claim, [s for s, _ in found], found[-1][0])


def _absence(members: Sequence[Standstill], group: str) -> Finding | None:
    missing = missing_rank(members, group)
    if missing is None:
        return None
    behind, ahead, call, ranks = missing
    waiting = ", ".join(map(str, ranks))
    claim = (
        f"Rank {behind.process.rank} never called {operation_words(call)}, which rank {waiting} "
        f"waits for; it {behind.words()}"
    )
    found = _shown(claim, (behind, ahead), behind)
    if not behind.waits_for_data and not behind.is_saving:
        return found
    guesses = suggested(moderate="checkpoint-overhead collective-mismatch")
    if behind.waits_for_data:
        guesses = suggested("", "worker-crash data-loading-bound", "collective-mismatch")
    return replace(found, shows=None, suggests=guesses)


def _shown(claim: str, cited: Sequence[Standstill], at_fault: Standstill) -> Finding:
    return finding(
        claim,
        "collective-mismatch",
        *(s.evidence() for s in cited),
        onset=at_fault.stall.step,
        place=at_fault.place,
    )


def _call(seq: int, op: str = "gloo:all_reduce", size: int = 10, *, done: bool = True) -> Call:
    return {"seq": seq, "op": op, "input_sizes": [[size]], "group": "0", "is_retired": done}


def _rank(
    *calls: Call, line: int = 20, code: str = "dist.all_reduce(x)", **told: object
) -> Process:
    stack = (Place("/home/me/train.py", line, "main", code),)
    stall = Stall(9, 40, 60.0, 0.1, (("MainThread", stack),), calls, **told)  # type: ignore[arg-type]
    return Process(stalls=(stall,))


_WAITS = _rank(_call(1), _call(2), _call(3, done=False))
_KILLED = Ending(signal=15)

FIRES = {
    "one never came": recorded(
        _WAITS, _rank(_call(1), _call(2), line=33, code="sleep(1)"), ending=_KILLED
    ),
    "another operation": recorded(
        _WAITS, _rank(_call(1), _call(2), _call(3, "gloo:barrier", done=False)), ending=_KILLED
    ),
    "one had ended": recorded(
        _WAITS, Process(counts=Counts(50, steps=40, is_end=True)), ending=_KILLED
    ),
    "one had ended and was missed": recorded(
        Process(caught=(Caught(50, "RuntimeError", "Connection closed by peer [::1]:4321"),)),
        Process(counts=Counts(50, steps=40, is_end=True)),
        ending=Ending(exit_code=1),
    ),
    "another shape": recorded(
        _WAITS, _rank(_call(1), _call(2), _call(3, size=11, done=False)), ending=_KILLED
    ),
}

SILENT = {
    "near miss: all wait in the same one": recorded(_WAITS, _WAITS, ending=_KILLED),
    "near miss: it went on": recorded(
        Process(stalls=(*_WAITS.stalls, Stall(12, 40, 70.0, is_over=True))),
        _rank(_call(1), _call(2)),
        ending=_KILLED,
    ),
    "near miss: still running and seen once": recorded(
        _WAITS, _rank(_call(1), _call(2)), ending=Ending(is_running=True)
    ),
    "near miss: gathered parts of different sizes": recorded(
        _rank(_call(1, "gloo:all_gather", 3, done=False)),
        _rank(_call(1, "gloo:all_gather", 4, done=False)),
        ending=_KILLED,
    ),
    "near miss: the other failed by itself": recorded(
        Process(caught=(Caught(50, "KeyError", "'label'"),)),
        Process(counts=Counts(50, steps=40, is_end=True)),
        ending=Ending(exit_code=1),
    ),
    "it ended well": recorded(_WAITS, _rank(_call(1)), ending=Ending(exit_code=0)),
}
