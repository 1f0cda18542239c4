"""The loaders that a recorded run trained from."""

from traindx.model.recording import Loader, Process


def sequential_loader(process: Process) -> Loader | None:
    """The one loader that steps were taken from, if it reads in order."""
    trained = {e.loader for e in process.epochs if e.trained}
    unknown = not process.epochs and len(process.loaders) == 1
    used = [x for x in process.loaders if x.id in trained or unknown]
    if len(used) != 1 or used[0].is_shuffled or used[0].sampler != "SequentialSampler":
        return None
    return used[0] if (used[0].batches or 0) > 1 else None
