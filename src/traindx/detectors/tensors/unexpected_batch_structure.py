from traindx.analysis.errors.call_messages import STRUCTURE
from traindx.analysis.errors.messages import findings
from traindx.analysis.errors.root_failure import is_raised_on_purpose, last_burst
from traindx.examples import Frame, failed
from traindx.registry import Findings, Run, detector
from traindx.tracebacks import own_frames


@detector(needs=("failure",), suggests=("api-misuse", "rendezvous-failure"))
def check(run: Run) -> Findings:
    """Data are read by keys, positions or types that they do not have.

    ## What it detects
    KeyError, "not enough values to unpack", "list indices must be integers", "string indices must
    be integers", "'int' object is not subscriptable", "unsupported operand type(s)" and "list
    index out of range".

    ## Why it matters
    What the loader returns and what the loop expects no longer match. The line that raises reads
    the data; the fault may be where they are made.

    ## What to do
    Print one batch: `type(batch)`, its keys and shapes, and bring the two sides together.

    ## When it is wrong
    If only one record lacks the field, the data are at fault and not the code.
    """
    is_own = any(map(own_frames, last_burst(run)))
    yield from findings(
        run, STRUCTURE, when=lambda k: is_own and not is_raised_on_purpose(k.failure)
    )


_CHECKED = failed(
    "KeyError: \"param 'initial_lr' is not specified in param_groups[0]\"",
    "s = StepLR(opt, 9, last_epoch=3)",
    frames=(Frame("/lib/site-packages/torch/optim/x.py", 42, "f", 'raise KeyError("param'),),
)

FIRES = {
    "a batch without labels": failed("KeyError: 'labels'", "y = batch['labels']"),
    "three parts": failed(
        "ValueError: too many values to unpack (expected 2)", "for x, y in loader:"
    ),
    "a list in place of a dict": failed(
        "TypeError: list indices must be integers or slices, not str", "y = batch['labels']"
    ),
    "no launcher": failed("KeyError: 'LOCAL_RANK'", "os.environ['LOCAL_RANK']"),
}

SILENT = {
    "near miss: the program's own check": failed(
        "KeyError: 'record 12 has no label'", "raise KeyError(f'record {i} has no label')"
    ),
    "near miss: raised inside of a library alone": failed("KeyError: 'labels'"),
    "near miss: a check of the optimizer's": _CHECKED,
    "another error": failed("RuntimeError: CUDA out of memory.", "loss.backward()"),
}
