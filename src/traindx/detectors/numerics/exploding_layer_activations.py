from math import isfinite

from traindx.analysis.recordings.initialisation import is_near_overflow
from traindx.analysis.recordings.observations import has_learnt, late_from, medians, processes_of
from traindx.examples import recorded, sampled
from traindx.model.recording import Activation, Process, Sample
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "exploding-activations"
GREW = 1000.0  # times the spread at the first sample; trained networks grow tenfold
LARGE = 1e4  # what is smaller harms nobody
DEEP = 1e4  # times the spread of the lowest layer, at the very first sample
LAYERS = 4
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
        found = _over_depth(process)
        if has_learnt(process):  # unless the numbers are about to end
            found = found if found is not None and is_near_overflow(process) else None
        else:
            found = _over_steps(process) or found
        if found is not None:
            yield found
            return


def _over_steps(process: Process) -> Finding | None:
    layers: dict[tuple[int, str, str], list[tuple[Sample, Activation]]] = {}
    for sample in process.samples:
        for activation in sample.activations:
            if isfinite(activation.std):
                key = (sample.optimizer, activation.name, activation.op)
                layers.setdefault(key, []).append((sample, activation))
    for (_, name, op), seen in layers.items():
        before = seen[0][1].std
        late = [a.std for s, a in seen if s.step >= late_from(process)]
        after = medians(late)
        if len(late) < 2 or not after > max(GREW * before, LARGE) or not before > 0:
            continue
        last = seen[-1][0]
        says = f"the standard deviation of {op} at {name} rose from {before:.3g} to {after:.3g}"
        return finding(
            f"Activations at {name or op} explode to {after / before:.3g} times their initial size",
            {CAUSE: Strength.STRONG},
            cite_record(process, last.line, says, step=float(last.step)),
            onset=next(s.step for s, a in seen if a.std > TENFOLD * before),
        )
    return None


def _over_depth(process: Process) -> Finding | None:
    """Look at the first sample, whose activations are listed from the loss downward."""
    first = process.samples[0] if process.samples else None
    spreads = [] if first is None else [a for a in first.activations if a.std > 0]
    if first is None or first.step > 0 or len(spreads) < LAYERS:
        return None
    lowest, highest = spreads[-1], max(spreads, key=lambda a: a.std)
    if highest.std < max(DEEP * lowest.std, LARGE):
        return None
    says = (
        f"at initialisation the standard deviation is {lowest.std:.3g} at "
        f"{lowest.name or lowest.op} and {highest.std:.3g} at {highest.name or highest.op}"
    )
    return finding(
        f"Activations explode in the untrained model, {highest.std / lowest.std:.3g}-fold from the "
        "first to the last layers",
        {CAUSE: Strength.STRONG, "bad-initialisation": Strength.MODERATE},
        cite_record(process, first.line, says, step=0.0),
        onset=0.0,
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
