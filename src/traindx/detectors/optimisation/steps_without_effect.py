from math import isfinite

from traindx.analysis.recordings.optimizer_groups import learning_rates
from traindx.analysis.recordings.traces import Trace, latest_optimizers, per_process, traces_of
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Optimizer, Parameter, Process, Sample
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

ENOUGH = 2  # samples
HALVES = ("float16", "bfloat16")
TINY_RATE = 1e-7  # below it, float32 swallows the update of most weights


@detector(
    needs=("recording",),
    suggests=("half-precision-weights", "lr-too-low", "missing-optimizer-step"),
)
@per_process
def check(process: Process) -> Findings:
    """The optimizer takes steps with gradients and a learning rate, and nothing moves.

    ## What it detects
    Two or more sampled steps, all of one optimizer, in which the parameters it owns have
    gradients and a learning rate above 0, and not one of them changed; nor between the samples.

    ## Why it matters
    The run costs what training costs and learns nothing.

    ## What to do
    In half precision, keep the weights in float32 and use autocast. Otherwise compare the learning
    rate with the size of the weights: an update below their last digit is rounded away.

    ## When it is wrong
    Optimizers that keep a copy of the weights and write it back later move them between the
    samples, and are left alone.
    """
    if process.counts is not None and process.counts.has_moved:
        return
    for optimizer in latest_optimizers(process):
        rates = learning_rates(optimizer)
        own = [t for t in traces_of(process) if t.parameter.optimizer == optimizer.id]
        samples = [s for s in process.samples if s.optimizer == optimizer.id]
        live = [t for t in own if t.of_owner().has_gradient]
        if len(samples) < ENOUGH or not live or not rates or max(rates) <= 0.0:
            continue
        if any(s.cleared for s in samples) or not all(_is_still(t) for t in own):
            continue
        yield _finding(process, optimizer, samples, live, max(rates))


def _is_still(trace: Trace) -> bool:
    return trace.is_known_still and all(g is None or isfinite(g) for g in trace.grads)


def _finding(
    process: Process, optimizer: Optimizer, samples: list[Sample], live: list[Trace], rate: float
) -> Finding:
    is_half = all(t.parameter.dtype in HALVES for t in live)
    first = samples[0]
    kind = f" ({live[0].parameter.dtype})" if is_half else ""
    says = (
        f"{len(live)} parameters{kind} have gradients, the learning rate is {rate:.3g}, none "
        f"changed in {len(samples)} sampled steps"
    )
    suggests = {"missing-optimizer-step": Strength.WEAK, "lr-too-low": Strength.MODERATE}
    if is_half:
        suggests = {"half-precision-weights": Strength.STRONG, "lr-too-low": Strength.WEAK}
    elif rate < TINY_RATE:
        suggests = {"lr-too-low": Strength.STRONG}
    return finding(
        f"{optimizer.type} takes steps but none of its {len(live)} parameters changes",
        suggests,
        cite_record(process, first.line, says, step=first.step, lr=rate),
        place=optimizer.place,
    )


_NAMES = ("0.weight", "2.weight")


def _run(rate: float = 1e-10, dtype: str = "float32", still: tuple[str, ...] = _NAMES) -> Run:
    parameters = [Parameter(n, (16, 16), dtype, True, 0) for n in _NAMES]
    held = Optimizer(2, type="SGD", groups=({"lr": rate},), size=2)
    return recorded(watched(*parameters, still=still, optimizer=held))


FIRES = {"a rate below the last digit": _run(), "weights in half precision": _run(1e-5, "bfloat16")}

SILENT = {
    "all move": _run(0.1, still=()),
    "near miss: one of them moves": _run(still=("0.weight",)),
    "near miss: a rate of zero is another matter": _run(0.0),
    "near miss: no gradients, so nothing to apply": recorded(
        watched(*weights(*_NAMES), grads=(None, None), still=_NAMES)
    ),
}
