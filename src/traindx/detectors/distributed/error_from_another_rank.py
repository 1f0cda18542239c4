from traindx.analysis.errors.culprits import cite_failure, explain
from traindx.analysis.errors.root_failure import (
    echoes,
    first_line,
    ranks_that_raised,
    root_failure,
    standing,
)
from traindx.examples import failed, make_run
from traindx.registry import Findings, Run, Strength, detector

SHOWN = 3  # echoes that are cited; the others say the same


@detector(needs=("failure",), suggests=("rank-failed-first",))
def check(run: Run) -> Findings:
    """One rank failed, and the errors of the others are consequences.

    ## What it detects
    A log with timeouts, closed connections or the launcher's summary on some ranks, and an error of
    its own on one: that rank failed first.

    ## Why it matters
    The last lines of such a log, and often its loudest, are consequences. Raising the timeout
    changes nothing.

    ## What to do
    Fix the error of the rank that failed first; the others need nothing.

    ## When it is wrong
    If the clocks or the buffering of the ranks differ, the order of the lines may mislead; an error
    that is no echo still comes before all echoes.
    """
    root = root_failure(run)
    if root is None or standing(root):
        return
    alike = ranks_that_raised(run, root)
    # a launcher's word that names no rank is no news where several failed alike
    others = [e for e in echoes(run) if e.rank not in (alike | {None} if len(alike) > 1 else alike)]
    if not others:
        return
    ranks = sorted({e.rank for e in others if e.rank is not None})
    whom = f"rank {', '.join(map(str, ranks))}" if ranks else "the others"
    where = f"Rank {root.rank}" if root.rank is not None else "One process"
    claim = f"{where} failed first with {first_line(root, 120)}; {whom} failed as a consequence"
    notes = [cite_failure(run, e) for e in others[:SHOWN]]
    # not shown: where that error is explained, its cause is the root and this only follows from it
    guess = {"rank-failed-first": Strength.STRONG}
    yield explain(run, root, claim.rstrip("."), suggests=guess, notes=notes)


def _failures(*pairs: tuple[str, int]) -> Run:
    return make_run(failures=[failed(e, "main()", rank=r).failures[0] for e, r in pairs])


_ECHO = "RuntimeError: [pair.cc:525] Connection closed by peer [10.0.0.2]:4321"

_LAUNCHER = "ChildFailedError: rank : 1 (local_rank: 1) exitcode : -15"

FIRES = {
    "a closed connection": _failures(("KeyError: 'label'", 1), (_ECHO, 0)),
    "the launcher's word on a rank that was stopped": _failures(
        ("KeyError: 'label'", 0), (_LAUNCHER, 1)
    ),
}

SILENT = {
    "near miss: every rank waited": _failures((_ECHO, 0), (_ECHO, 1)),
    "the same error on all ranks": _failures(("KeyError: 'label'", 0), ("KeyError: 'label'", 1)),
    "near miss: the same error on all ranks, and the launcher's word on one": _failures(
        ("NameError: name 'rank' is not defined. Did you mean: 'range'?", 1),
        ("NameError: name 'rank' is not defined", 0),
        (_LAUNCHER, 1),
    ),
}
