"""What is said where memory runs out: of a device, of the host, shared between processes."""

from __future__ import annotations

from traindx.analysis.errors.messages import Message, Table

DEVICE_MEMORY: Table = (
    Message(
        r"(?s)(?:CUDA|HIP|XPU|MPS(?: backend)?) (?:error: )?out of memory"
        r"|Tried to allocate .{0,40}(?:GPU|MPS)|CUBLAS_STATUS_ALLOC_FAILED"
        r"|CUDNN_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: .{0,60}[Oo]ut of memory"
        r"|OOM when allocating tensor with shape",
        "The GPU is out of memory{sizes}{reason}",
    ),
    Message("", "The GPU is out of memory{sizes}{reason}", types="ResourceExhaustedError"),
)
SHARED_MEMORY: Table = (
    Message(
        r"(?is)insufficient shared memory|out of shared memory|killed by signal: Bus error"
        r"|unable to (?:mmap|open shared memory object|resize file|write to file|allocate shared)"
        r".{0,60}(?:torch_|shm|shared)|No space left on device: '?/dev/shm",
        "A DataLoader worker ran out of shared memory (/dev/shm)",
        shows="shared-memory-exhausted",
    ),
    Message(
        "",
        "A DataLoader worker ran out of shared memory (/dev/shm)",
        shows="shared-memory-exhausted",
        types="BusError",
    ),
    Message(
        r"Too many open files|received 0 items of ancdata|unable to open shared memory",
        "The process ran out of file handles; every shared tensor takes one",
        strong="shared-memory-exhausted",
        weak="worker-crash",
    ),
)
_HOST = (
    "The host is out of memory: {asked} requested[[ for an array of shape ({shape})]]"
    "[[ of {dtype}]]"
)
HOST_MEMORY: Table = (
    Message(
        r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory): you tried to allocate "
        r"(?P<size>\d+ ?(?:bytes|[KMGT]?B))",
        _HOST,
        strong="host-memory-growth",
    ),
    Message(
        r"Unable to allocate (?P<size>\d+(?:\.\d+)? [KMGTP]iB) for an array with shape "
        r"\((?P<shape>[\d, ]*)\)(?: and data type (?P<dtype>\w+))?",
        _HOST,
        strong="host-memory-growth",
    ),
    Message(
        r"Cannot allocate memory|std::bad_alloc|CUDA error: out of host memory",
        _HOST,
        strong="host-memory-growth",
    ),
    Message("", _HOST, strong="host-memory-growth", types="MemoryError"),
)
