from traindx.analysis.errors.messages import findings
from traindx.analysis.errors.process_group_messages import (
    PARAMETERS_WITHOUT_GRADIENT,
    parameters_without_gradient,
)
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("ddp-unused-parameters", "api-misuse"))
def check(run: Run) -> Findings:
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
    yield from findings(run, PARAMETERS_WITHOUT_GRADIENT, words=parameters_without_gradient)


_ERROR = (
    "RuntimeError: Expected to have finished reduction in the prior iteration before starting a "
    "new one. This error indicates that your module has parameters that were not used in producing "
    "loss.\nParameter indices which did not receive grad for rank 0: 6 7"
)

FIRES = {
    "with indices": failed(_ERROR, "out = model(x)", rank=0),
    "twice": failed(
        "RuntimeError: Expected to mark a variable ready only once. Parameter at index 5 with name "
        "layers.0.weight has been marked as ready twice."
    ),
}

SILENT = {
    "near miss: a timeout": failed(
        "torch.distributed.DistBackendError: Watchdog caught collective operation timeout"
    ),
    "another error": failed("KeyError: 'label'"),
}
