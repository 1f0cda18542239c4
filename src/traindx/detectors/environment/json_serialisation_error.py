from traindx.analysis.errors.environment_messages import UNSERIALISABLE
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """A metric of numpy or torch is written to JSON as it is.

    ## What it detects
    "Object of type float32 is not JSON serializable" and the same for tensors, arrays and paths.

    ## Why it matters
    It strikes at the end of an epoch, when results are written, and costs the run.

    ## What to do
    Convert at the border: `float(value)` for numpy numbers, `.item()` for tensors, `.tolist()` for
    arrays, `str(path)`.

    ## When it is wrong
    It is not: the message names the type.
    """
    yield from findings(run, UNSERIALISABLE)


FIRES = {
    "a numpy number": failed(
        "TypeError: Object of type float32 is not JSON serializable", "json.dump(metrics, f)"
    )
}

SILENT = {
    "near miss: pickling": failed("TypeError: cannot pickle '_thread.lock' object"),
    "another error": failed("KeyError: 'label'"),
}
