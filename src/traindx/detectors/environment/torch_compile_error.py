from traindx.analysis.errors.environment_messages import COMPILER
from traindx.analysis.errors.messages import causes_in, findings
from traindx.analysis.errors.root_failure import last_part
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=causes_in(COMPILER))
def check(run: Run) -> Findings:
    """torch.compile fails on the code, on its backend or on its tools.

    ## What it detects
    `Unsupported` (what Dynamo cannot capture under `fullgraph=True`), `BackendCompilerFailed` and
    `InductorError`, a missing C++ compiler or Triton, and the recompile limit where it is an error.

    ## Why it matters
    The model itself may be right: without compilation it runs, slower.

    ## What to do
    Run once without `torch.compile` to see whether the model works. Then take out what is not
    supported, or exclude it with `torch.compiler.disable`; `TORCH_LOGS=graph_breaks` lists all.

    ## When it is wrong
    An error of the model itself, raised while it is traced, is wrapped in TorchRuntimeError.
    """
    yield from findings(run, COMPILER, words=lambda known: {"type": last_part(known.failure.type)})


FIRES = {
    "not capturable": failed(
        "torch._dynamo.exc.Unsupported: Data-dependent branching\n  Explanation: Detected "
        "data-dependent branching",
        "out = model(x)",
    ),
    "no compiler": failed(
        "torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler. Please "
        "specify via CC environment variable."
    ),
    "the backend": failed(
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: AssertionError"
    ),
}

SILENT = {
    "near miss: an operator that is missing": failed(
        "NotImplementedError: \"addmm_impl_cpu_\" not implemented for 'Half'"
    ),
    "another error": failed("KeyError: 'label'"),
}
