import numpy as np

from traindx.analysis.errors.failing_lines import evaluates_with_gradients
from traindx.analysis.errors.memory_messages import DEVICE_MEMORY
from traindx.analysis.errors.memory_sizes import Allocation, memory_words, read_allocation
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import make_failed_run, make_run
from traindx.model.findings import Evidence, Strength, cite
from traindx.model.run import Failure
from traindx.registry import Findings, Run, detector

SHARED_PART = 0.2  # of the device; less is the context or the desktop
LOOSE_PART = 0.1  # of the device; less is what any caching allocator keeps
LATE_STEPS = 100  # a need that is the same in every step shows long before this
GROWTH = 1.2  # last against first; allocators settle within that


@detector(
    needs=("failure",),
    suggests=("activation-memory", "memory-fragmentation", "device-shared", "graph-kept-alive",
              "optimizer-state-memory", "evaluation-with-grad"),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The GPU is out of memory.

    ## What it detects
    "CUDA out of memory" in all its wordings, and RESOURCE_EXHAUSTED of JAX and TensorFlow, with
    every number in it: what was asked for, what is free, allocated, reserved, held by other
    processes. Together they tell a need that is too large from fragments, from another process,
    and from memory that grew over the run.

    ## Why it matters
    Each of these has another cure, and a smaller batch helps against only one of them.

    ## What to do
    See the cause that the numbers point at.

    ## When it is wrong
    A longer sequence or a larger last batch makes a constant need fail late as well.
    """
    known = known_error(run, DEVICE_MEMORY)
    if known is None:
        return
    sizes = read_allocation(known.failure.message)
    weights, reason, notes = _weigh(run, known.failure, sizes)
    claim = known.claim(sizes=sizes.words, reason=reason)
    yield finding(known, claim, suggests=weights, notes=notes)


Weights = dict[str, Strength]


def _weigh(run: Run, failure: Failure, sizes: Allocation) -> tuple[Weights, str, list[Evidence]]:
    """The causes that the numbers, the place and the time speak for."""
    if sizes.capacity and sizes.tried > sizes.capacity:
        return {"activation-memory": Strength.STRONG}, ": one request exceeds the whole GPU", []
    if sizes.others > SHARED_PART * sizes.capacity and sizes.tried <= sizes.free + sizes.others:
        reason = f": other processes hold {memory_words(sizes.others)}"
        return {"device-shared": Strength.STRONG, "activation-memory": Strength.WEAK}, reason, []
    if sizes.loose > max(sizes.tried, LOOSE_PART * sizes.capacity) > 0:
        reason = ": the reserved memory would suffice, but it is fragmented"
        weights = {"memory-fragmentation": Strength.STRONG, "activation-memory": Strength.WEAK}
        return weights, reason, []
    grown = _growth(run)
    if grown is not None:
        weights = {"graph-kept-alive": Strength.STRONG, "activation-memory": Strength.WEAK}
        return weights, ": memory has grown over the run", [grown]
    return _weigh_place(run, failure), "", []


def _weigh_place(run: Run, failure: Failure) -> Weights:
    if any("/optim/" in f.file or f.code.endswith("optimizer.step()") for f in failure.frames):
        return {"optimizer-state-memory": Strength.STRONG, "activation-memory": Strength.WEAK}
    if evaluates_with_gradients(run, failure):
        return {"evaluation-with-grad": Strength.STRONG, "activation-memory": Strength.WEAK}
    weights = {"activation-memory": Strength.STRONG, "optimizer-state-memory": Strength.WEAK}
    if failure.step is not None and failure.step >= LATE_STEPS:
        weights["graph-kept-alive"] = Strength.MODERATE
    return weights


def _growth(run: Run) -> Evidence | None:
    for series in (s.finite() for s in run.matching("memory/*")):
        values = series.values
        if len(values) < 6 or values[1] <= 0:
            continue
        share = float(np.mean(np.diff(values) >= 0))
        if values[-1] > GROWTH * values[1] and share > 0.8:
            said = f"{series.name} rises from {values[1]:.4g} to {values[-1]:.4g}"
            return cite(series, said, 1, len(series) - 1)
    return None


_OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total "
    "capacity; 9.71 GiB already allocated; 5.56 MiB free; 9.80 GiB reserved in total by PyTorch)"
)
_NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 79.15 GiB of which 1.25 GiB is free. Including non-PyTorch memory, this process "
    "has 77.90 GiB memory in use. Of the allocated memory 60.00 GiB is allocated by PyTorch, and "
    "17.00 GiB is reserved by PyTorch but unallocated."
)

FIRES = {
    "older wording": make_failed_run(_OLD, "out = model(x)"),
    "newer wording, fragments": make_failed_run(_NEW, "out = model(x)"),
    "of JAX": make_failed_run(
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate 3743729664 bytes.",
        "state = train_step(state, batch)",
    ),
    "of TensorFlow": make_failed_run(
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating "
        "tensor with shape[8,512,3072] and type float on /device:GPU:0 by allocator GPU_0_bfc"
    ),
    "no numbers": make_failed_run("RuntimeError: CUDA error: out of memory"),
}

SILENT = {
    "near miss: the host's memory": make_failed_run(
        "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 40 bytes."
    ),
    "no error": make_run({"memory/allocated": [1.0, 2.0, 3.0]}),
}
