from traindx.analysis.recordings.ranks import (
    caught_words,
    code_words,
    first_error,
    lost_connections,
    own_errors,
    own_places,
    place_words,
    ranks_of,
    silent_ranks,
    standstills,
)
from traindx.examples import recorded, stalled
from traindx.model.recording import Caught, Counts, Ending, Place, Process
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding, suggested


@detector(needs=("recording",), suggests=("rank-failed-first", "killed-by-host"))
def check(run: Run) -> Findings:
    """One rank failed or fell silent, and the others waited for it.

    ## What it detects
    An exception of its own on one rank while others stood still in a collective; or a rank whose
    recording breaks off without an end while all the others wait for it or lost the connection.

    ## Why it matters
    What the waiting ranks report, a timeout or a closed connection, is a consequence, and comes
    minutes later.

    ## What to do
    Fix the error of the rank that failed. For one that fell silent look at the kernel's log
    (`dmesg -T`) and the scheduler's record.

    ## When it is wrong
    A rank that is stuck below Python, holding the interpreter, falls silent as well.
    """
    first, silent, lost = first_error(run), silent_ranks(run), lost_connections(run)
    still = [s for s in standstills(run) if s.process.world_size > 1]
    noticed = [s.evidence() for s in still[:1]]
    if first is not None and not lost:  # a lost connection is an error of its own, told as one
        process, caught, others = first
        place = next(iter(own_places(caught.places)[-1:]), None)
        error, names = caught_words(caught), ", ".join(map(str, others))
        says = f"rank {process.rank} raised {error}{place_words(place)}{code_words(place)}"
        yield finding(
            f"Rank {process.rank} failed first with {error}; rank {names} waited for it",
            {"rank-failed-first": Strength.STRONG},
            cite_record(process, caught.line, says, step=caught.step),
            *noticed,
            against=suggested("collective-mismatch", weak="api-misuse"),
            place=place,
        )
    elif silent is not None and not any(own_errors(p) for p in ranks_of(run)):
        gone, broken = silent
        line = gone[0].counts.line if gone[0].counts is not None else 1
        says = f"the recording of rank {gone[0].rank} stops without an end or an error"
        names = ", ".join(str(p.rank) for p in gone)
        one = f"Rank {names}" if len(gone) == 1 else f"One of the ranks {names}"
        then = "the others lost the connection" if broken else "the others wait for it"
        why = "it was killed or crashed" + ("" if broken else ", or is stuck in native code")
        raised = (cite_record(p, c.line, f"rank {p.rank} raised {caught_words(c)}")
                  for p, c in broken[:1])  # fmt: skip
        yield finding(
            f"{one} stopped without an error, and {then}; {why}",
            suggested("rank-failed-first", weak="killed-by-host"),
            cite_record(gone[0], line, says),
            *raised,
            *noticed,
            against=suggested("collective-mismatch uneven-inputs"),
        )


def _caught(kind: str, message: str, time_s: float) -> Process:
    places = (Place("/home/me/train.py", 31, "main", "y = batch['label']"),)
    return Process(caught=(Caught(44, kind, message, 40, time_s, places=places),))


_CALL = {"seq": 9, "op": "gloo:all_reduce", "group": "0", "is_retired": False}
_BACKWARD = Place("/home/me/train.py", 12, "main", "loss.backward()")
_WAITING = stalled(_BACKWARD, collectives=(_CALL,))
_LOST = _caught("RuntimeError", "Connection closed by peer [::1]:4321", 9.0)
_KILLED = Ending(signal=15)

FIRES = {
    "an error and a wait": recorded(_WAITING, _caught("KeyError", "'label'", 5.0), ending=_KILLED),
    "silence and a lost connection": recorded(_LOST, Process(counts=Counts(30, steps=38))),
    "silence": recorded(_WAITING, Process(counts=Counts(30, steps=38)), ending=_KILLED),
}

SILENT = {
    "near miss: the same error on every rank": recorded(
        _caught("KeyError", "'label'", 5.0), _caught("KeyError", "'label'", 5.1)
    ),
    "near miss: an error and a lost connection, which is told as an error": recorded(
        _LOST, _caught("KeyError", "'label'", 5.0)
    ),
    "near miss: a timeout of one, and the launcher stopped the other": recorded(
        _caught("RuntimeError", "Timed out waiting 1800000ms for recv", 9.0), Process()
    ),
    "near miss: every rank waits": recorded(_WAITING, _WAITING, ending=_KILLED),
    "near miss: the other ended": recorded(
        _WAITING, Process(counts=Counts(30, steps=38, is_end=True)), ending=_KILLED
    ),
    "near miss: an error that nobody waited for": recorded(
        Process(), _caught("KeyError", "'label'", 5.0), ending=Ending(exit_code=1)
    ),
}
