"""Which layer or line makes two sizes differ."""

from traindx.analysis.errors.culprits import Culprit
from traindx.analysis.errors.shape_blame import culprit_of, find_blame, mixed_batch
from traindx.analysis.errors.shape_messages import SizeError
from traindx.analysis.program import project_of
from traindx.analysis.program.shapes.accounts import origin_of
from traindx.analysis.program.shapes.machine import Conflict
from traindx.analysis.program.shapes.sizes import Size
from traindx.model.findings import Evidence
from traindx.model.run import Failure, Run


def size_culprit(
    run: Run, failure: Failure, error: SizeError
) -> tuple[Culprit | None, list[Evidence]]:
    """Return the layer that was built for another size, and how that size came about."""
    if error.kind == "batch":
        sizes = (error.expected or 0, error.got or 0)
        return mixed_batch(project_of(run), failure, *sizes), []
    if error.kind not in ("broadcast", "concat", "view", "features", "rank"):
        return None, []
    blame = find_blame(project_of(run), failure, lambda c: _fits(error, c))
    if blame is None:
        return None, []
    account = origin_of(blame.trace, blame.conflict)
    place = f"line {blame.conflict.line}"
    notes = [Evidence(t, blame.conflict.file, place) for t in (blame.conflict.text, account) if t]
    if blame.layer is None:
        return None, notes
    expected = blame.conflict.expected
    unit = "features" if isinstance(expected, int) else "input"
    says = f"{blame.name} is built here for {expected} {unit}"
    return culprit_of(blame, says, is_repairable=error.kind == "features"), notes


def _fits(error: SizeError, conflict: Conflict) -> bool:
    if error.kind != conflict.kind:
        return False
    if error.kind == "view":
        return _elements(conflict.got, error)
    if error.kind == "rank":
        return conflict.got == f"{error.got}D"
    return {conflict.expected, conflict.got} == {error.expected, error.got}


def _elements(total: object, error: SizeError) -> bool:
    """Tell whether a number of elements is the one in the message, for some batch size."""
    if isinstance(total, Size) and error.got is not None:
        return len(total.terms) == 1 and error.got % total.terms[0][1] == 0
    return total == error.got
