from traindx.analysis.recordings.optimizer_groups import decays_weights
from traindx.analysis.recordings.owners import moves_weights
from traindx.analysis.recordings.traces import latest_optimizers, per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Optimizer, Process
from traindx.registry import Findings, Run, cite_record, detector, finding

ENOUGH = 2  # samples
NEARLY_ALL = 0.9  # of them


@detector(needs=("recording",), suggests=("gradients-cleared-before-step",))
@per_process
def check(process: Process) -> Findings:
    """Backward gave gradients, and the step that followed found none.

    ## What it detects
    Nine of ten sampled steps of an optimizer that found the gradients of its parameters cleared
    although backward had just computed them.

    ## Why it matters
    The step has nothing to apply: weights do not change, or change by weight decay alone.

    ## What to do
    Move `zero_grad()` to before `backward()`, or after `step()`.

    ## When it is wrong
    Updates that are applied inside of backward clear gradients on purpose; where weights move
    without weight decay, nothing is said.
    """
    for optimizer in latest_optimizers(process):
        samples = [s for s in process.samples if s.optimizer == optimizer.id]
        known = [s for s in samples if s.cleared is not None]
        cleared = [s for s in known if s.cleared]
        if len(cleared) < ENOUGH or len(cleared) < NEARLY_ALL * len(known):
            continue
        if moves_weights(process, optimizer) and not decays_weights(optimizer):
            continue
        first = cleared[0]
        says = f"gradients were gone before the step in {len(cleared)} of {len(known)} samples"
        yield finding(
            "Gradients are cleared between backward() and optimizer.step()",
            "gradients-cleared-before-step",
            cite_record(process, first.line, says, step=first.step, cleared=len(cleared)),
            place=optimizer.place or first.place,
        )


_NAMES = ("0.weight", "2.weight")


def _run(cleared: bool | None, *, moves: bool = False, decay: float = 0.0) -> Run:
    held = Optimizer(2, type="AdamW", groups=({"lr": 0.1, "weight_decay": decay},), size=2)
    still = () if moves else _NAMES
    return recorded(watched(*weights(*_NAMES), still=still, cleared=cleared, optimizer=held))


FIRES = {
    "cleared, nothing moves": _run(True),
    "cleared, only decay moves": _run(True, moves=True, decay=0.01),
}

SILENT = {
    "a right loop": _run(False, moves=True),
    "near miss: applied within backward": _run(True, moves=True),
    "near miss: not known": _run(None),
}
