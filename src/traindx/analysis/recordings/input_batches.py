"""The batches of a recorded run, and what its first layer is given."""

from collections.abc import Sequence
from math import hypot, isfinite, prod, sqrt

from traindx.analysis.recordings.loss_labels import BATCH_LABELS
from traindx.analysis.recordings.observations import is_integer, medians, rows
from traindx.model.recording import Activation, NonFinite, Process, Sample, Summary
from traindx.model.run import Run

APART = 1.0  # of the spread of the inputs: between all means before and all means after
WIDER = 2.0  # times: between all spreads before and all spreads after
BEFORE, AFTER = 5, 2  # samples
EXACT = 1e-3  # numbers that are the same up to rounding; by chance they differ by a tenth or more
RAW_INPUT = 100.0  # of the mean or the spread of what the first layer is given
FIRST_LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d", "LazyLinear", "LSTM", "GRU", "RNN")
EMBEDDED = ("Embedding", "EmbeddingBag")
NOT_NORMALISED = 10.0  # the size of the inputs; normalised ones have one
RAW_SAMPLES = 2
AT_ONCE = 50  # steps until the first NaN or Inf
BOUND = 2.0  # rate times curvature, beyond which plain descent diverges
FAR_BEYOND = 10.0  # times the bound


def first_layer_input(sample: Sample) -> Activation | None:
    """What the lowest layer is given, if it is a batch of the loader and no inner value."""
    shapes = {b.shape for b in sample.batch if "float" in b.dtype and len(b.shape) > 1}
    given = [a for a in sample.activations if a.op.startswith("input of")]
    fit = [a for a in given if a.shape in shapes and isfinite(a.mean) and isfinite(a.std)]
    return fit[-1] if fit and not fit[-1].nonfinite else None


def input_change(inputs: Sequence[Activation]) -> int | None:
    """The first input that is unlike all before, as are all that follow."""
    for at in range(BEFORE, len(inputs) - AFTER + 1):
        old, new = inputs[:at], inputs[at:]
        width = max(a.std for a in old)
        first, second = [a.mean for a in old], [a.mean for a in new]
        gap = max(min(second) - max(first), min(first) - max(second))
        if 0.0 < APART * width < gap:
            return at
        wide, narrow = [a.std for a in new], [a.std for a in old]
        if min(wide) > WIDER * max(narrow) > 0.0 or min(narrow) > WIDER * max(wide) > 0.0:
            return at
    return None


def is_input_table(summary: Summary) -> bool:
    """Tell whether a tensor of a batch is a table of features of enough examples."""
    is_table = len(summary.shape) > 1 and rows(summary.shape) >= BATCH_LABELS
    return "float" in summary.dtype and is_table and summary.shape[1:] != (1,)


def has_constant_inputs(sample: Sample) -> bool:
    """Tell whether all examples of a batch are the same."""
    floats = [b for b in sample.batch if is_input_table(b)]
    has_ids = any(is_integer(b) and len(b.shape) > 1 for b in sample.batch)
    is_constant = all(not b.nonfinite and 0.0 in (b.std, b.spread) for b in floats)
    return bool(floats) and not has_ids and is_constant


def repeats_one_example(sample: Sample) -> bool:
    """Tell whether a linear layer that takes the batch gets the same row for every example.

    Its gradient is a sum over examples of outer products, and that of its bias the sum of the left
    sides: with one right side for all, their norms differ by the norm of that one.
    """
    shapes = {b.shape for b in sample.batch if is_input_table(b) and len(b.shape) == 2}
    grads = dict(zip(sample.names, sample.grad_norms, strict=False))
    layers = [a for a in sample.activations if a.op == "input of addmm" and a.shape in shapes]
    if len(layers) != 1:
        return False
    of_weight, of_bias = (grads.get(f"{layers[0].name}.{n}") or 0.0 for n in ("weight", "bias"))
    length = sqrt(layers[0].shape[1]) * hypot(layers[0].mean, layers[0].std)
    is_known = of_bias > 0.0 and length > 0.0
    return is_known and abs(of_weight / of_bias / length - 1.0) < EXACT


def raw_table(sample: Sample) -> Summary | None:
    """Return the first floating-point table of a batch, if it is on a raw scale."""
    if any(is_integer(b) and len(b.shape) > 1 for b in sample.batch):
        return None  # token ids, or images of bytes that are scaled later
    tables = [b for b in sample.batch if "float" in b.dtype and len(b.shape) > 1]
    return tables[0] if tables and scale_of(tables[0]) >= RAW_INPUT else None


def scale_of(given: Summary | Activation) -> float:
    """Return the larger of the mean and the spread of a tensor."""
    return max(abs(given.mean), given.std)


def takes_raw_inputs(process: Process) -> bool:
    """Tell whether the first part of every model with parameters takes its inputs as they are."""
    for model in process.models:
        owners = {p.name.rsplit(".", 1)[0] for p in model.parameters}
        kinds = [m.type for m in model.modules if m.name in owners]
        if not kinds or kinds[0] not in FIRST_LAYERS or any(k in EMBEDDED for k in kinds):
            return False
    return bool(process.models)


def position_ratio(sample: Sample, shapes: dict[str, tuple[int, ...]], table: str) -> float | None:
    """How many times larger than the positions that is to which they are added."""
    norms = dict(zip(sample.names, sample.weight_norms, strict=False))
    batches = {b.shape for b in sample.batch if "float" in b.dtype and len(b.shape) > 1}
    positions = norms.get(table, 0.0) / sqrt(max(1, prod(shapes[table])))
    for layer in sample.activations:
        weight = f"{layer.name}.weight"
        size = hypot(layer.mean, layer.std)
        is_first = (
            layer.op.startswith("input of") and layer.shape in batches and size >= NOT_NORMALISED
        )
        if is_first and weight in shapes and shapes[weight][0] == shapes[table][-1] and positions:
            return norms.get(weight, 0.0) / sqrt(shapes[weight][0]) * size / positions
    return None


def raw_inputs(process: Process) -> tuple[list[Sample], Summary] | None:
    """Return the samples whose tables go into the first layer as they are, and the first table."""
    samples = [s for s in process.samples if s.batch]
    scales = [scale for s in samples if (scale := raw_table(s)) is not None]
    if len(scales) < RAW_SAMPLES or len(scales) < len(samples) or not takes_raw_inputs(process):
        return None
    # the inputs of the layer that is furthest from the loss
    inputs = ([a for a in s.activations if a.op.startswith("input of")] for s in samples)
    reached = [a for given in inputs for a in given[-1:]]
    is_raw = bool(reached) and medians(scale_of(a) for a in reached) >= RAW_INPUT
    return (samples, scales[0]) if is_raw else None


def breaking_rate(run: Run, process: Process, given: Summary) -> tuple[NonFinite, float] | None:
    """Return an early breakdown by a rate that suits normalised inputs, and that rate.

    The rate is times the number of inputs.
    """
    broken = process.nonfinite[0] if process.nonfinite else None
    rate = run.get("lr")
    known = rate.finite().values if rate is not None else ()
    kinds = {o.type for o in process.optimizers}
    if broken is None or broken.step > AT_ONCE or not len(known) or kinds != {"SGD"}:
        return None
    pace = float(max(known)) * float(prod(given.shape[1:]))
    is_by_scale = pace <= BOUND and pace * mean_square(given) >= FAR_BEYOND * BOUND
    return (broken, pace) if is_by_scale else None


def mean_square(summary: Summary) -> float:
    """Return the mean of the squares of a tensor's values."""
    return summary.mean**2 + summary.std**2
