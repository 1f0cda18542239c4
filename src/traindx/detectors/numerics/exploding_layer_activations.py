from collections.abc import Sequence

from traindx.analysis.recordings.initialisation import is_near_overflow
from traindx.analysis.recordings.layer_growth import grown_layer, grown_with_depth
from traindx.analysis.recordings.observations import has_learnt, processes_of
from traindx.examples import recorded, sampled
from traindx.model.recording import Activation, Process, Sample
from traindx.registry import Finding, Findings, Run, cite_record, detector, finding, suggested

CAUSE = "exploding-activations"
TENFOLD = 10.0  # times its start: the growth has begun


@detector(needs=("recording",), suggests=(CAUSE, "bad-initialisation"))
def check(run: Run) -> Findings:
    """Activations of a layer grow a thousandfold over the steps, or ten thousandfold with depth.

    ## What it detects
    The spread of what a layer is given, from sample to sample, that rises to a thousand times its
    start and beyond 10⁴ while the loss does not fall; or that rises ten thousandfold from the
    lowest to the highest layer before the first step.

    ## Why it matters
    What grows without bound ends in overflow, at the latest in half precision.

    ## What to do
    Normalise (layer norm before each block), scale residual branches, initialise for the depth,
    lower the learning rate.

    ## When it is wrong
    A network that learns large targets needs large activations; where the loss falls, nothing is
    said, unless the numbers are near the end of their range. Residual streams grow tenfold with
    depth.
    """
    for process in processes_of(run):
        deep, has_fallen = grown_with_depth(process), has_learnt(process)
        grown = None if has_fallen else grown_layer(process)
        if grown is not None:
            yield _over_steps(process, *grown)
            return
        if deep is not None and (not has_fallen or is_near_overflow(process)):
            yield _over_depth(process, *deep)
            return


def _over_steps(
    process: Process, seen: Sequence[tuple[Sample, Activation]], after: float
) -> Finding:
    (_, first), (last, _) = seen[0], seen[-1]
    says = (
        f"the standard deviation of {first.op} at {first.name} rose from {first.std:.3g} to "
        f"{after:.3g}"
    )
    return finding(
        f"Activations at {first.name or first.op} explode to {after / first.std:.3g} times their "
        "initial size",
        suggested(CAUSE),
        cite_record(process, last.line, says, step=float(last.step)),
        onset=next(s.step for s, a in seen if a.std > TENFOLD * first.std),
    )


def _over_depth(process: Process, lowest: Activation, highest: Activation) -> Finding:
    says = (
        f"at initialisation the standard deviation is {lowest.std:.3g} at "
        f"{lowest.name or lowest.op} and {highest.std:.3g} at {highest.name or highest.op}"
    )
    return finding(
        f"Activations explode in the untrained model, {highest.std / lowest.std:.3g}-fold from the "
        "first to the last layers",
        suggested(CAUSE, "bad-initialisation"),
        cite_record(process, process.samples[0].line, says, step=0.0),
    )


def _run(*spreads: float, losses: tuple[float, float] = (2.0, 2.5)) -> Run:
    seen = [Activation("block.3", "input of addmm", (64, 32), std=s) for s in spreads]
    fields = {"loss": lambda i: losses[i > 0], "activations": lambda i: (seen[i],)}
    return recorded(sampled(len(seen), **fields))


def _deep(*spreads: float) -> Run:
    activations = tuple(Activation(f"l{i}", "relu", std=s) for i, s in enumerate(spreads))
    return recorded(sampled(1, activations=activations))


FIRES = {
    "over the steps": _run(1.0, 40.0, 3e3, 4e5, 6e7),
    "with depth": _deep(1e9, 1e6, 1e4, 30.0, 1.0),
}

SILENT = {
    "steady": _run(1.0, 1.2, 1.1, 1.2, 1.3),
    "near miss: grows tenfold": _run(1.0, 4.0, 9.0, 10.0, 11.0),
    "near miss: learns large targets": _run(1.0, 40.0, 3e3, 4e5, 5e5, losses=(1e12, 1e9)),
    "near miss: a residual stream": _deep(12.0, 8.0, 5.0, 3.0, 1.0),
}
