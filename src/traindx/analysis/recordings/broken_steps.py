"""The first step of a recorded run that gave NaN or infinity, and what came before it."""

from math import hypot, isfinite, isnan, prod

from traindx.analysis.program.training.edges import edged_operations
from traindx.analysis.program.training.program import program_of
from traindx.analysis.recordings.observations import operation, summary_words
from traindx.model.findings import Evidence, Location, cite_record
from traindx.model.recording import Activation, NonFinite, Place, Process, Sample
from traindx.model.run import Run

ORDINARY = 1e4  # losses and earlier gradients below it do not overflow on the way back
GREW = 10.0  # times the size of the weights, or of the loss, at the first sample
SHOWN = 4


def first_nan_gradient(process: Process) -> Sample | None:
    """The first sample with NaN gradients, if all that led to them was sound."""
    counts = process.counts
    is_half = any("16" in p.dtype for m in process.models for p in m.parameters)
    if is_half or (counts is not None and counts.scaled):
        return None
    for sample in process.samples:
        norms = [g for g in sample.grad_norms if g is not None]
        if any(isnan(g) for g in norms):
            return sample if _is_all_else_finite(process, sample) else None
        if any(g > ORDINARY for g in norms):
            return None
    return None


def _is_all_else_finite(process: Process, sample: Sample) -> bool:
    is_first = not any(r.step < sample.step for r in process.nonfinite)
    is_loss_sound = isfinite(sample.loss) and abs(sample.loss) < ORDINARY
    are_weights = bool(sample.weight_norms) and all(map(isfinite, sample.weight_norms))
    are_outputs = not any(i.prediction.nonfinite for i in sample.losses)
    is_batch = not any(b.nonfinite for b in sample.batch)
    return is_first and is_loss_sound and are_weights and are_outputs and is_batch


def gives_nan(process: Process, sample: Sample) -> bool:
    """Tell whether what came of a batch was seen to be no number."""
    is_first = any(r.step == sample.step for r in process.nonfinite)
    return is_first or any(i.prediction.nonfinite for i in sample.losses)


def broke_before(process: Process, sample: Sample) -> bool:
    """Tell whether something was no number already: a model that is fed its own state passes it on.

    Weights that are NaN make the next state of a recurrent model NaN, which is then an input.
    """
    earlier = [s for s in process.samples if s.step < sample.step]
    return (
        any(r.step < sample.step for r in process.nonfinite)
        or any(not isfinite(n) for n in sample.weight_norms)
        or any(i.prediction.nonfinite for s in earlier for i in s.losses)
    )


def broke_ever(process: Process) -> bool:
    """Tell whether a weight or a gradient was seen to be NaN or infinite."""
    norms = [n for s in process.samples for n in (*s.weight_norms, *s.grad_norms) if n is not None]
    return bool(process.nonfinite) or not all(map(isfinite, norms))


def cite_growth(process: Process, earlier: list[Sample]) -> tuple[Evidence, ...]:
    """Cite the samples between which weights or loss grew tenfold."""
    if len(earlier) < 2:
        return ()
    first, last = earlier[0], earlier[-1]
    pairs = {
        "the norm of all weights": (_size(first), _size(last)),
        "the loss": (abs(first.loss), abs(last.loss)),
    }
    for what, (before, after) in pairs.items():
        if before > 0 and isfinite(after) and after > GREW * before:
            says = f"{what} grew from {before:.3g} (step {first.step}) to {after:.3g}"
            return (cite_record(process, last.line, says, step=float(last.step)),)
    return ()


def _size(sample: Sample) -> float:
    return hypot(*sample.weight_norms) if sample.weight_norms else float("nan")


def masked_softmax(sample: Sample) -> Activation | None:
    """The softmax whose rows are NaN, unless what feeds it may be NaN already."""
    softmaxes = [a for a in sample.activations if operation(a.op) == "softmax" and a.masked_rows]
    rest = [a for a in sample.activations if operation(a.op) != "softmax"]
    is_partial = softmaxes and all(_rows(a) == 0 or a.masked_rows < _rows(a) for a in softmaxes)
    if not is_partial or (rest and all(a.nonfinite for a in rest)):
        return None
    return min(softmaxes, key=lambda a: a.masked_rows)


def _rows(activation: Activation) -> int:
    return prod(activation.shape[:-1]) if activation.shape else 0


def are_gradients_finite(process: Process) -> bool:
    """Tell whether all gradients are finite; of others a scaler skips the step."""
    grads = (g for s in process.samples for g in s.grad_norms if g is not None)
    return all(isfinite(g) for g in grads)


def suspect_operation(run: Run, backward: Place | None) -> tuple[Location, Evidence] | None:
    """The one operation with an edge, and no guard in sight, in the file that calls backward."""
    if backward is None:
        return None
    file = backward.file.rsplit("/", 1)[-1]
    events = edged_operations(program_of(run))
    found = [e for e in events if e.module.path.rsplit("/", 1)[-1] == file]
    if len(found) != 1:
        return None
    says = "the derivative of this operation does not exist at the edge of its domain"
    return found[0].module.location(found[0].node), found[0].cite(says)


def cite_batch(process: Process, record: NonFinite) -> tuple[Evidence, ...]:
    """Cite what is known of a batch that holds NaN or infinity."""
    step = float(record.step)
    said = [record.why or "the batch contains NaN or infinity"]
    said += [summary_words(s) for s in record.inputs[:SHOWN]]
    said += [f"the batch is kept in {record.kept}"] if record.kept else []
    return tuple(cite_record(process, record.line, says, step=step) for says in said)
