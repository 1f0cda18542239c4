"""Forward passes that nothing is learnt from: what they are passes over."""

from __future__ import annotations

from traindx.model.recording import Evaluation, Loader, Process

REPEATED = 1.5  # passes per batch: dropout that samples predictions runs each batch many times


def is_over_held_out_data(process: Process, record: Evaluation) -> bool:
    """Tell whether an evaluation went over a loader that nothing is trained on, each batch once."""
    passes = [e for e in process.epochs if e.loader == record.loader]
    trained_on = {e.loader for e in process.epochs if e.trained > 0}
    if record.loader is None or not passes or record.loader in trained_on or not trained_on:
        return False
    if record.forwards > REPEATED * max(e.batches for e in passes):
        return False
    loaders = {x.id: x for x in process.loaders}
    own = loaders.get(record.loader)
    same = (loaders[i] for i in trained_on if i in loaders)
    return own is None or not any(_is_same_data(own, other) for other in same)


def _is_same_data(one: Loader, other: Loader) -> bool:
    return one.size is not None and (one.dataset, one.size) == (other.dataset, other.size)
