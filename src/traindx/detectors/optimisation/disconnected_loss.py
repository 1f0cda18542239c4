from traindx.analysis.recordings.traces import latest_optimizers, per_process, traces_of
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Optimizer, Process
from traindx.registry import Findings, Run, cite_record, detector, finding

ENOUGH = 2  # samples


@detector(needs=("recording",), suggests=("detached-loss",))
@per_process
def check(process: Process) -> Findings:
    """Backward runs without error, and no parameter of the optimizer ever gets a gradient.

    ## What it detects
    Two or more sampled steps after a backward pass in which every trainable parameter that an
    optimizer holds has no gradient, and none of them ever changed.

    ## Why it matters
    The tensor that backward is called on does not depend on the model: `torch.tensor(loss.item(),
    requires_grad=True)`, or `requires_grad_()` on a loss that was cut off, silence the error and
    not its reason.

    ## What to do
    Call backward on the very tensor that the loss function returned, and look for `.item()`,
    `.data`, `.numpy()` and `detach()` on the way from the model to it.

    ## When it is wrong
    Programs that train an input, not the model, hold that input in their optimizer; where an
    optimizer holds anything but the model's parameters, nothing is said. Nor where gradients are
    cleared before the step.
    """
    traces = [t for t in traces_of(process) if t.is_owned and t.parameter.is_trainable]
    is_run = process.counts is None or process.counts.backwards > 0
    optimizers = latest_optimizers(process)
    if not is_run or process.nonfinite or any(o.strangers for o in optimizers):
        return
    for optimizer in optimizers:
        held = [t for t in traces if t.parameter.optimizer == optimizer.id]
        samples = [s for s in process.samples if s.names and s.optimizer == optimizer.id]
        is_seen = len(samples) >= ENOUGH and held and not any(s.cleared for s in samples)
        if is_seen and not any(t.is_reached or t.has_moved or not t.samples for t in held):
            first = samples[0]
            says = (
                f"none of the parameters has a gradient after backward, in {len(samples)} samples"
            )
            yield finding(
                f"No gradient reaches any of the {len(held)} trainable parameters",
                "detached-loss",
                cite_record(process, first.line, says, step=first.step, parameters=len(held)),
                place=first.place,
            )


_NAMES = ("0.weight", "2.weight")


def _run(*grads: float | None, strangers: int = 0, cleared: bool = False) -> Run:
    held = Optimizer(2, type="SGD", groups=({"lr": 0.1},), size=2 + strangers, strangers=strangers)
    return recorded(
        watched(*weights(*_NAMES), grads=grads, still=_NAMES, cleared=cleared, optimizer=held)
    )


FIRES = {"a new tensor with requires_grad": _run(None, None)}

SILENT = {
    "reached": _run(0.1, 0.1),
    "near miss: one of them is reached": _run(None, 1e-9),
    "near miss: an input is trained": _run(None, None, strangers=1),
    "near miss: cleared before the step": _run(None, None, cleared=True),
}
