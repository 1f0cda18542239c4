"""torch.compile could not compile."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, root_failure

TYPES = ("BackendCompilerFailed", "Unsupported", "InternalTorchDynamoError", "TorchRuntimeError",
         "InductorError", "UserError", "LoweringException", "FailOnRecompileLimitHit",
         "CppCompileError", "InvalidCxxCompiler", "TritonMissing")  # fmt: skip
TOOLS = re.compile(
    r"Failed to find C compiler|No working C\+\+ compiler|Cannot find a working triton installation"
    r"|fatal error: Python\.h|Compiler: \S+ is not found|gcc.{0,40}not found|ptxas"
    r"|too old to be supported by the triton"
)
BREAK = re.compile(r"^(?:Unsupported:? ?)?(?P<what>[^\n]{3,160})")
LIMIT = re.compile(r"recompile_limit|cache_size_limit")


@detector(
    needs=("failure",), suggests=("graph-breaks", "recompilation", "version-mismatch", "api-misuse")
)
def check(run: Run) -> Iterator[Finding]:
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
    failure = root_failure(run)
    if failure is None:
        return
    kind = failure.type.rsplit(".", 1)[-1]
    if (found := TOOLS.search(failure.message)) is not None:
        claim = f"A tool that torch.compile needs is missing: {found[0]}"
        yield explain(run, failure, claim, shows="version-mismatch")
        return
    if kind not in TYPES:
        return
    what = BREAK.match(failure.message)
    said = f": {what['what'].strip().rstrip('.')}" if what is not None else ""
    if kind == "Unsupported":
        claim = f"Code that torch.compile cannot capture{said}"
        yield explain(run, failure, claim, suggests={"graph-breaks": Strength.STRONG})
    elif LIMIT.search(failure.message) or kind == "FailOnRecompileLimitHit":
        claim = f"The limit of recompilations is reached{said}"
        yield explain(run, failure, claim, shows="recompilation")
    else:
        claim = f"Compilation by torch.compile failed ({kind}){said}"
        guesses = {"api-misuse": Strength.MODERATE, "version-mismatch": Strength.MODERATE,
                   "graph-breaks": Strength.WEAK}  # fmt: skip
        yield explain(run, failure, claim, suggests=guesses)


FIRES = {
    "not capturable": make_failed_run(
        "torch._dynamo.exc.Unsupported: Data-dependent branching\n  Explanation: Detected "
        "data-dependent branching",
        "out = model(x)",
    ),
    "no compiler": make_failed_run(
        "torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler. Please "
        "specify via CC environment variable."
    ),
    "the backend": make_failed_run(
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: AssertionError"
    ),
}

SILENT = {
    "near miss: an operator that is missing": make_failed_run(
        "NotImplementedError: \"addmm_impl_cpu_\" not implemented for 'Half'"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
