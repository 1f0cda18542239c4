"""A rank is missing from a collective that others wait in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from traindx.analysis.recordings.ranks import (
    Standstill,
    caught_words,
    echoes_in,
    operation_words,
    own_places,
    place_words,
    ranks_of,
    standstills,
    training_loader,
)
from traindx.examples import recorded
from traindx.model.findings import Finding, Strength, at, cite_record
from traindx.model.recording import Caught, Counts, Ending, Place, Process, Stall
from traindx.model.run import Run
from traindx.registry import detector

# all ranks give the same size; what is gathered, scattered or exchanged may differ by design
SAME_SIZE = ("all_reduce", "allreduce", "broadcast", "reduce", "barrier")

EVERYONE = "0"  # the group that torch makes first; numbers begin with 1

Call = Mapping[str, object]


@detector(
    needs=("recording",),
    suggests=(
        "collective-mismatch",
        "uneven-inputs",
        "worker-crash",
        "data-loading-bound",
        "checkpoint-overhead",
    ),
)
def check(run: Run) -> Iterator[Finding]:
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
    early `continue`, one decision that is told to all.

    ## When it is wrong
    A rank that merely takes long looks the same until it comes; a pause that ended is not
    reported. If all ranks wait in the same collective, the network or a lost process is to blame,
    and nothing is said here.
    """
    still = [s for s in standstills(run) if s.process.world_size > 1]
    groups = {str(c.get("group", "")) for s in still for c in s.calls}
    for group in sorted(groups):
        members = [s for s in still if _last(s, group) >= 0]
        finding = _disagreement(members, group) or _absence(members, group)
        if finding is not None:
            yield finding
            return
    yield from _early_end(run)


def _early_end(run: Run) -> Iterator[Finding]:
    """A rank that came to its end is missing from all that the others still do."""
    ranks = ranks_of(run)
    waiting = [s for s in standstills(run) if s.process.world_size > 1 and s.waits_for_ranks]
    lost = [(p, c) for p in ranks for c in echoes_in(p)]
    ended = [p for p in ranks if p.counts and p.counts.is_end and not p.caught and not p.stalls]
    if not ended or not (waiting or lost):
        return
    gone = ended[0]
    assert gone.counts is not None
    says = f"rank {gone.rank} came to its end after {gone.counts.steps} steps, without an error"
    evidence = [cite_record(gone, gone.counts.line, says, step=gone.counts.steps)]
    evidence += [s.evidence() for s in waiting]
    evidence += [cite_record(p, c.line, f"rank {p.rank}: {caught_words(c)}") for p, c in lost]
    whom = waiting[0].process if waiting else lost[0][0]
    lengths = {x.batches for p in (gone, whom) if (x := training_loader(p)) is not None}
    is_even = len(lengths) == 1 and None not in lengths
    guesses = {"collective-mismatch": Strength.MODERATE, "uneven-inputs": Strength.MODERATE}
    place = waiting[0].place if waiting else next(iter(own_places(lost[0][1].places)[-1:]), None)
    yield Finding(
        claim=f"Rank {gone.rank} left after {gone.counts.steps} steps, and rank {whom.rank} waited "
        f"for it in vain{place_words(place)}",
        strength=Strength.STRONG,
        evidence=tuple(evidence[:4]),
        suggests={} if is_even else guesses,
        against={"uneven-inputs": Strength.STRONG} if is_even else {},
        shows="collective-mismatch" if is_even else None,
        is_symptom=True,
        onset=float(gone.counts.steps),
        location=at(place),
    )


def _calls(still: Standstill, group: str) -> dict[int, Call]:
    own = [c for c in still.calls if str(c.get("group", "")) == group]
    return {c["seq"]: c for c in own if isinstance(c.get("seq"), int)}  # type: ignore[misc]


def _last(still: Standstill, group: str) -> int:
    """Return the number of a rank's last call; −1 if it may not belong to the group at all."""
    return max(_calls(still, group), default=0 if group == EVERYONE else -1)


def _disagreement(members: Sequence[Standstill], group: str) -> Finding | None:
    """Find the first number under which two ranks called different things."""
    told = [_calls(s, group) for s in members]
    common = set.intersection(*(set(t) for t in told)) if len(told) > 1 else set()
    for number in sorted(common):
        kinds = {_kind(t[number]) for t in told}
        if len(kinds) == 1:
            continue
        one = members[0]
        other = next(
            s
            for s, t in zip(members, told, strict=True)
            if _kind(t[number]) != _kind(told[0][number])
        )
        calls = [(s, operation_words(_calls(s, group)[number])) for s in (one, other)]
        what = " and ".join(f"rank {s.process.rank} called {words}" for s, words in calls)
        return _shown(f"The ranks called different collectives: {what}", (one, other), other)
    return None


def _kind(call: Call) -> tuple[str, str]:
    name = str(call.get("op", "")).rsplit(":", 1)[-1]
    is_sized = name.lstrip("_").startswith(SAME_SIZE) and "scatter" not in name
    return name, str(call.get("input_sizes")) if is_sized else ""


def _absence(members: Sequence[Standstill], group: str) -> Finding | None:
    """Find a rank that has called fewer collectives than the others."""
    if len(members) < 2:
        return None
    last = {s.process.rank: _last(s, group) for s in members}
    behind = min(members, key=lambda s: last[s.process.rank])
    number = last[behind.process.rank] + 1
    ahead = next((s for s in members if last[s.process.rank] >= number), None)
    call = _calls(ahead, group).get(number) if ahead is not None else None
    if ahead is None or ahead.pending is None or behind.waits_for_ranks:
        return None
    words = operation_words(call or ahead.pending)
    waiting = ", ".join(str(r) for r, n in last.items() if n >= number)
    claim = (
        f"Rank {behind.process.rank} never came to {words}, in which rank {waiting} waits: it "
        f"{behind.words()}"
    )
    if behind.waits_for_data:
        guesses = {
            "worker-crash": Strength.MODERATE,
            "data-loading-bound": Strength.MODERATE,
            "collective-mismatch": Strength.WEAK,
        }
        return replace(_shown(claim, (behind, ahead), behind), shows=None, suggests=guesses)
    if behind.is_saving:
        guesses = {
            "checkpoint-overhead": Strength.MODERATE,
            "collective-mismatch": Strength.MODERATE,
        }
        return replace(_shown(claim, (behind, ahead), behind), shows=None, suggests=guesses)
    return _shown(claim, (behind, ahead), behind)


def _shown(claim: str, cited: Sequence[Standstill], at_fault: Standstill) -> Finding:
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=tuple(s.evidence() for s in cited),
        shows="collective-mismatch",
        is_symptom=True,
        onset=float(at_fault.stall.step),
        location=at(at_fault.place),
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
