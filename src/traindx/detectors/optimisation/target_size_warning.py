import re

from traindx.analysis.errors.culprits import shape_of
from traindx.examples import Event, make_run
from traindx.registry import Findings, Run, cite_event, detector, finding, suggested

WARNING = re.compile(
    r"Using a target size \(torch\.Size\(\[([\d, ]*)\]\)\) that is different to the input size "
    r"\(torch\.Size\(\[([\d, ]*)\]\)\)"
)


@detector(needs=("events",), suggests=("target-shape-broadcast", "output-size-mismatch"))
def check(run: Run) -> Findings:
    """torch warns of a target size that is different to the input size.

    ## What it detects
    The warning "Using a target size (torch.Size([64])) that is different to the input size
    (torch.Size([64, 1]))", by its sizes: (N, 1) and (N) become N × N pairs; (N, K) and (N, 1) mean
    that K outputs are trained towards one target, or one output towards K of them.

    ## Why it matters
    Broadcasting makes a number of it, gradients flow, and the model learns something else than what
    was meant: the mean of the targets, or one thing several times.

    ## What to do
    Give both the same shape, or the last layer as many outputs as an example has targets.

    ## When it is wrong
    One target for a whole batch, as adversarial losses have it, is meant so and left alone. Several
    estimates of one value, such as two critics in one layer, are trained like this on purpose.
    """
    for event in run.events:
        found = WARNING.search(event.text) if event.kind == "warning" else None
        target, given = (shape_of(text) for text in found.groups()) if found else ((), ())
        rows = max(given[:1] + target[:1], default=0)
        is_table = len(given) == len(target) == 2 and given[0] == target[0]
        if rows < 2:
            continue
        if {target, given} == {(rows, 1), (rows,)}:
            met = f"predictions of shape {given} against targets of shape {target}"
            cited = cite_event(event)
            yield finding(f"The loss broadcasts {met}", "target-shape-broadcast", cited)
            return
        if is_table and 1 in (given[1], target[1]):
            claim = f"The model has {given[1]} outputs per example but the target has {target[1]}"
            yield finding(claim, suggested("output-size-mismatch"), cite_event(event))
            return


def _warned(target: str, given: str) -> Run:
    text = (
        f"loss.py:535: UserWarning: Using a target size (torch.Size([{target}])) that is different "
        f"to the input size (torch.Size([{given}])). This will likely lead to incorrect results"
    )
    return make_run(events=[Event("warning", text, "train.log", "line 3")])


FIRES = {
    "a column against a row": _warned("64", "64, 1"),
    "two outputs for one target": _warned("64, 1", "64, 2"),
    "one output for three targets": _warned("64, 3", "64, 1"),
}

SILENT = {
    "near miss: one target for the batch": _warned("1", "64, 1"),
    "near miss: a number as target": _warned("", "64, 1"),
    "near miss: a batch of one": _warned("1", "1, 1"),
    "near miss: maps of two sizes": _warned("8, 1, 16, 16", "8, 3, 16, 16"),
    "another warning": make_run(events=[Event("warning", "UserWarning: x", "train.log", "1")]),
}
