from traindx.analysis.errors.memory_messages import HOST_MEMORY
from traindx.analysis.errors.memory_sizes import memory_bytes, memory_words
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import failed
from traindx.registry import Findings, Run, Strength, detector

HUGE = 1 << 44  # 16 TiB: no host has that, a size or shape is wrong


@detector(needs=("failure",), suggests=("host-memory-growth", "api-misuse"))
def check(run: Run) -> Findings:
    """The host has no memory left for an allocation.

    ## What it detects
    "DefaultCPUAllocator: can't allocate memory", numpy's "Unable to allocate … for an array with
    shape …", MemoryError and "Cannot allocate memory".

    ## Why it matters
    Data loader workers, caches and lists of results share the host's memory; what fails is only
    the last request.

    ## What to do
    Watch the resident size over an epoch; keep data memory-mapped, use fewer workers, and store
    numbers in place of tensors. A request beyond any machine means a wrong shape.

    ## When it is wrong
    A cgroup limit (container, Slurm) is lower than what the machine has.
    """
    known = known_error(run, HOST_MEMORY)
    if known is None:
        return
    size = memory_bytes(known["size"]) or 0.0
    asked = memory_words(size) if size else "more memory"
    if size > HUGE:
        claim = f"The program requests {asked}, more than any host has, so a size or shape is wrong"
        yield finding(known, claim, suggests={"api-misuse": Strength.STRONG})
    else:
        yield finding(known, known.claim(asked=asked))


FIRES = {
    "torch": failed(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 4000000000 bytes. Error code 12"
    ),
    "numpy": failed(
        "numpy.core._exceptions.MemoryError: Unable to allocate 14.9 GiB for an array with shape "
        "(2000000000,) and data type float64"
    ),
    "a wrong shape": failed(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 4000000000000000 bytes."
    ),
}

SILENT = {
    "near miss: the device": failed("RuntimeError: CUDA out of memory. Tried to allocate"),
    "another error": failed("KeyError: 'label'"),
}
