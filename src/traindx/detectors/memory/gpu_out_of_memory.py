from traindx.analysis.errors.memory_blame import memory_causes
from traindx.analysis.errors.memory_messages import DEVICE_MEMORY
from traindx.analysis.errors.memory_sizes import read_allocation
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import failed, logged
from traindx.registry import Findings, Run, detector


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
    weights, reason, notes = memory_causes(run, known.failure, sizes)
    claim = known.claim(sizes=sizes.words, reason=reason)
    yield finding(known, claim, suggests=weights, notes=notes)


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
    "older wording": failed(_OLD, "out = model(x)"),
    "newer wording, fragments": failed(_NEW, "out = model(x)"),
    "of JAX": failed(
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate 3743729664 bytes.",
        "state = train_step(state, batch)",
    ),
    "of TensorFlow": failed(
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating "
        "tensor with shape[8,512,3072] and type float on /device:GPU:0 by allocator GPU_0_bfc"
    ),
    "no numbers": failed("RuntimeError: CUDA error: out of memory"),
}

SILENT = {
    "near miss: the host's memory": failed(
        "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 40 bytes."
    ),
    "no error": logged(memory_allocated=[1.0, 2.0, 3.0]),
}
