"""DistributedDataParallel waited for gradients that never came, or came twice."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.errors.messages import KnownError, finding, known_error, read
from traindx.analysis.errors.process_group_messages import (
    NAMED_PARAMETERS,
    PARAMETERS_WITHOUT_GRADIENT,
)
from traindx.examples import make_failed_run
from traindx.model.findings import Finding
from traindx.model.run import Run
from traindx.registry import detector


@detector(needs=("failure",), suggests=("ddp-unused-parameters", "api-misuse"))
def check(run: Run) -> Iterator[Finding]:
    """DDP misses the gradient of some parameters, or gets one twice.

    ## What it detects
    "Expected to have finished reduction in the prior iteration before starting a new one", with the
    rank and the indices or names of the parameters, and "Expected to mark a variable ready only
    once".

    ## Why it matters
    DDP reduces gradients bucket by bucket and waits for every parameter; the error comes one step
    after the fault.

    ## What to do
    Use every parameter in the loss, or freeze those that are not; `find_unused_parameters=True` if
    they change from step to step. For "twice": reentrant checkpointing (`use_reentrant=False`), a
    shared module called twice, or two backward passes.

    ## When it is wrong
    If only one rank names parameters, the ranks take different branches.
    """
    known = known_error(run, PARAMETERS_WITHOUT_GRADIENT)
    if known is not None:
        yield finding(known, known.claim(which=_which(known)))


def _which(known: KnownError) -> str:
    found = read(known.failure.message, NAMED_PARAMETERS)
    if found is None:
        return "every parameter; set TORCH_DISTRIBUTED_DEBUG=DETAIL to see which"
    words = found[1]
    if "names" in words:
        listed = words["names"].replace(",", " ").rstrip(" .").split()
        more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
        return f"{', '.join(listed[:5])}{more} on rank {words['rank']}"
    listed = words["indices"].split()
    return f"{len(listed)} parameters on rank {words['rank']}: number {', '.join(listed[:8])}"


_ERROR = (
    "RuntimeError: Expected to have finished reduction in the prior iteration before starting a "
    "new one. This error indicates that your module has parameters that were not used in producing "
    "loss.\nParameter indices which did not receive grad for rank 0: 6 7"
)

FIRES = {
    "with indices": make_failed_run(_ERROR, "out = model(x)", rank=0),
    "twice": make_failed_run(
        "RuntimeError: Expected to mark a variable ready only once. Parameter at index 5 with name "
        "layers.0.weight has been marked as ready twice."
    ),
}

SILENT = {
    "near miss: a timeout": make_failed_run(
        "torch.distributed.DistBackendError: Watchdog caught collective operation timeout"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
