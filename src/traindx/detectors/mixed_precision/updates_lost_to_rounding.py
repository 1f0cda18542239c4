from traindx.analysis.recordings.traces import named, told_once
from traindx.analysis.recordings.weight_updates import (
    at_full_rate,
    half_precision_matrices,
    is_mostly_still,
)
from traindx.examples import recorded, watched
from traindx.model.recording import Parameter, Process
from traindx.model.run import Series
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "half-precision-weights"
MANY = 0.3  # of the matrices of one optimizer


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Steps leave weights of half precision exactly as they were, though gradients reach them.

    ## What it detects
    Matrices in float16 or bfloat16 that have gradients, that an optimizer owns, and of which not
    one value changed at most of the steps that were looked at, while others of the same optimizer
    did change.

    ## Why it matters
    bfloat16 keeps eight bits, float16 eleven: an update below 1/500 or 1/4000 of a weight is lost,
    whatever its direction. The loss stalls at what the few moving weights can do.

    ## What to do
    Keep the weights in float32 and compute in `torch.autocast`, or use an optimizer that keeps a
    copy in full precision or rounds stochastically.

    ## When it is wrong
    Steps of a warm-up and of the end of a schedule, at half of the highest rate and less, do not
    count. Where all weights of an optimizer stand still, the rate may be zero or the step may be
    missing, which other detectors report.
    """
    yield from told_once(run, lambda process: _look(process, run.get("lr")))


def _look(process: Process, rate: Series | None) -> Findings:
    for owned in half_precision_matrices(at_full_rate(process, rate)):
        still = [t for t in owned if is_mostly_still(t)]
        moving = [t for t in owned if t not in still and any(t.moves)]
        if not moving or len(still) < MANY * len(owned):
            continue
        says = f"{len(still)} of {len(owned)} half-precision matrices do not change: {named(still)}"
        claim = (
            f"Updates are lost to rounding: {named(still)} in {still[0].parameter.dtype} do "
            "not change, although they have gradients"
        )
        cited = cite_record(process, still[0].samples[-1].line, says, still=len(still))
        yield finding(claim, CAUSE, cited, onset=still[0].samples[0].step)


def _run(
    dtype: str, *still: str, grads: tuple[float, ...] = (0.1, 0.1, 0.1), rate: float = 1e-3
) -> Run:
    """A run whose samples have that rate, below a peak of 1e-3."""
    parameters = [Parameter(n, (16, 16), dtype, True, 0) for n in ("a", "b", "c")]
    process = watched(*parameters, grads=grads, still=still, count=8)
    last = max(s.step for s in process.samples)
    rates = [rate] * (last + 1) + [1e-3] * 20
    return recorded(process, lr=rates)


FIRES = {"most stand still": _run("bfloat16", "a", "b"), "one of three": _run("float16", "c")}

SILENT = {
    "all move": _run("bfloat16"),
    "near miss: full precision": _run("float32", "a", "b"),
    "near miss: nothing moves, as without a step": _run("bfloat16", "a", "b", "c"),
    "near miss: a warm-up, whose rates are small": _run("bfloat16", "a", "b", rate=1e-5),
    "near miss: what stands still has no gradient": _run("bfloat16", "a", grads=(0.0, 0.1, 0.1)),
}
