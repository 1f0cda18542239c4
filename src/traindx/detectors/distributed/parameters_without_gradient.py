"""DistributedDataParallel waited for gradients that never came, or came twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

UNFINISHED = re.compile(r"Expected to have finished reduction in the prior iteration")
INDICES = re.compile(
    r"[Pp]arameter indices which did not receive grad for rank (\d+): ([\d ]+(?:\.\.\.)?)"
)
NAMES = re.compile(r"[Pp]arameters which did not receive grad for rank (\d+): ([\w., ]+)")
TWICE = re.compile(
    r"Expected to mark a variable ready only once|has been marked as ready twice"
    r"(?:.{0,200}?[Pp]arameter at index (\d+)(?: with name ([\w.]+))?)?",
    re.DOTALL,
)
AT = re.compile(r"Parameter at index (\d+)(?: with name ([\w.]+))? has been marked")


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
    hit = match_root(run, UNFINISHED, TWICE)
    if hit is None:
        return
    failure, found = hit
    if found.re is UNFINISHED:
        claim = f"No gradient reached DDP for {_which(failure)}"
        yield explain(run, failure, claim, shows="ddp-unused-parameters")
        return
    at = AT.search(failure.message)
    name = f" {at[2]}" if at is not None and at[2] else ""
    which = f"parameter {at[1]}{name}" if at is not None else "a parameter"
    claim = (
        f"The gradient of {which} reached DDP twice in one step: reentrant checkpointing, a "
        "module that is used twice, or two backward passes"
    )
    yield explain(run, failure, claim, suggests={"api-misuse": Strength.STRONG})


def _which(failure: Failure) -> str:
    names, indices = NAMES.search(failure.message), INDICES.search(failure.message)
    if names is not None:
        listed = [n for n in re.split(r"[, ]+", names[2].strip(" .")) if n]
        more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
        return f"{', '.join(listed[:5])}{more} on rank {names[1]}"
    if indices is not None:
        listed = indices[2].split()
        return f"{len(listed)} parameters on rank {indices[1]}: number {', '.join(listed[:8])}"
    return "every parameter; set TORCH_DISTRIBUTED_DEBUG=DETAIL to see which"


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
