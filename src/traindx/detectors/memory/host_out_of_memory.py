"""The host ran out of memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root, memory_bytes, memory_words

TORCH = re.compile(
    r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory): you tried to allocate "
    r"(\d+) ?(bytes|[KMGT]?B)"
)
NUMPY = re.compile(
    r"Unable to allocate (\d+(?:\.\d+)? [KMGTP]iB) for an array with shape \(([\d, ]*)\)"
    r"(?: and data type (\w+))?"
)
PLAIN = re.compile(r"Cannot allocate memory|std::bad_alloc|CUDA error: out of host memory")
HUGE = 1 << 44  # 16 TiB: no host has that, a size or shape is wrong


@detector(needs=("failure",), suggests=("host-memory-growth", "api-misuse"))
def check(run: Run) -> Iterator[Finding]:
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
    hit = match_root(run, TORCH, NUMPY, PLAIN)
    if hit is None:
        hit = match_root(run, re.compile(""), types=("MemoryError",))
    if hit is None:
        return
    failure, found = hit
    size = 0.0
    if found.re is TORCH:
        size = memory_bytes(f"{found[1]} {found[2]}") or 0.0
    elif found.re is NUMPY:
        size = memory_bytes(found[1]) or 0.0
    asked = f" {memory_words(size)}" if size else ""
    shape = f" for an array of shape ({found[2]}) of {found[3]}" if found.re is NUMPY else ""
    if size > HUGE:
        claim = f"The program asks for{asked}{shape}: more than any host has, so a size is wrong"
        yield explain(run, failure, claim, suggests={"api-misuse": Strength.STRONG})
        return
    claim = f"The host cannot give{asked or ' more memory'}{shape}"
    yield explain(run, failure, claim, suggests={"host-memory-growth": Strength.STRONG})


FIRES = {
    "torch": make_failed_run(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 4000000000 bytes. Error code 12"
    ),
    "numpy": make_failed_run(
        "numpy.core._exceptions.MemoryError: Unable to allocate 14.9 GiB for an array with shape "
        "(2000000000,) and data type float64"
    ),
    "a wrong shape": make_failed_run(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 4000000000000000 bytes."
    ),
}

SILENT = {
    "near miss: the device": make_failed_run("RuntimeError: CUDA out of memory. Tried to allocate"),
    "another error": make_failed_run("KeyError: 'label'"),
}
