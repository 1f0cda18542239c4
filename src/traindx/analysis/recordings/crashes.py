"""Errors that a recorder saw, with the tensors at hand when they were raised."""

from collections.abc import Iterator, Mapping

from traindx.analysis.errors.memory_sizes import memory_words
from traindx.analysis.recordings.observations import (
    cite_kept_batch,
    is_integer,
    shape_words,
    summary_words,
    tensors_by_frame,
)
from traindx.model.findings import Evidence, Strength, cite_record
from traindx.model.recording import Caught, Process, Recording, Summary

LOSS_FRAMES = ("cross_entropy", "nll_loss")
SHOWN = 6  # modules, tensors
SEQUENCE = 3  # tokens at least; fewer are columns of a table


def failed_lookup(caught: Caught) -> tuple[Summary, int] | None:
    """Return the indices and the number of rows of the embedding that failed."""
    for where, held in tensors_by_frame(caught).items():
        ids, table = held.get("input"), held.get("weight")
        if not where.startswith("embedding") or ids is None or table is None:
            continue
        if is_integer(ids) and len(table.shape) == 2:
            rows = table.shape[0]
            if ids.high >= rows or ids.low < 0:
                return ids, rows
    return None


def are_tokens(caught: Caught, ids: Summary) -> bool:
    """Tell whether failed indices are sequences of ids that the model was given, not positions."""
    if len(ids.shape) != 2 or ids.shape[1] < SEQUENCE or ids.low < 0 or not caught.modules:
        return False
    are_positions = ids.high == ids.shape[1] - 1 or ids.distinct == ids.shape[1]
    return ids.shape in caught.modules[0][2] and not are_positions


def name_in_own_code(caught: Caught, ids: Summary) -> str:
    """Return what the user's code calls the tensor."""
    for where, summary in caught.tensors:
        same = (summary.shape, summary.low, summary.high) == (ids.shape, ids.low, ids.high)
        if same and not where.startswith("embedding") and is_integer(summary):
            return f"`{summary.name}` ({where})"
    return ""


def failed_labels(caught: Caught) -> tuple[Summary, Summary, int] | None:
    """Return labels, logits and the number of classes of the loss that failed."""
    for where, held in tensors_by_frame(caught).items():
        logits, labels = held.get("input"), held.get("target")
        if not where.startswith(LOSS_FRAMES) or logits is None or labels is None:
            continue
        classes = logits.shape[1] if len(logits.shape) > 1 else (logits.shape or (0,))[0]
        if is_integer(labels) and classes and (labels.high >= classes or labels.low < 0):
            return labels, logits, classes
    return None


def reason_of_labels(labels: Summary, classes: int) -> str:
    """Return in words why labels may lie outside of the classes; nothing if unknown."""
    if labels.low == 1 and labels.high == classes:
        return " (the labels start at 1)"
    if labels.low == -1 and labels.high < classes:
        return " (−1 usually marks 'no label')"
    return " (off by one)" if labels.high == classes else ""


def failed_layer(caught: Caught) -> str:
    """Return the layer that failed, in words."""
    if not caught.modules:
        return ""
    name, kind, _ = caught.modules[-1]
    return f"{name} ({kind})" if name else ""


def cite_modules_and_tensors(process: Process, caught: Caught, step: float) -> Iterator[Evidence]:
    """Cite the inputs of the modules on the way, the tensors and the kept batch."""
    chain = [
        f"{name or kind} gets {' and '.join(map(shape_words, shapes))}"
        for name, kind, shapes in caught.modules[-SHOWN:]
        if shapes
    ]
    if chain:
        yield cite_record(process, caught.line, "; ".join(chain), step=step)
    for where, summary in caught.tensors[:SHOWN]:
        device = f" on {summary.device}" if summary.device else ""
        says = f"{summary_words(summary)}{device} in {where}"
        yield cite_record(process, caught.line, says)
    yield from cite_kept_batch(process, caught)


def signal_of(recording: Recording) -> int | None:
    """Return the signal that ended a command, also as a shell or a wrapper reports it."""
    ending = recording.ending
    if ending is None or ending.is_running:
        return None
    code = ending.exit_code or 0
    reported = code - 128 if 128 < code < 160 else -code
    return ending.signal or (reported if reported > 0 else None)


def last_memory(recording: Recording) -> Iterator[Evidence]:
    """Cite the memory that the processes used when they were last seen."""
    for process in recording.processes:
        for sample in [s for s in process.samples if s.rss_bytes > 0][-1:]:
            says = f"the process used {memory_words(sample.rss_bytes)} at step {sample.step}"
            yield cite_record(process, sample.line, says, step=sample.step)


def causes_of_labels(labels: Summary, classes: int) -> Mapping[str, Strength]:
    """Return how far labels beyond the classes speak for too small an output."""
    is_small = labels.low >= 0 and labels.high > classes
    return {"output-size-mismatch": Strength.MODERATE if is_small else Strength.WEAK}
