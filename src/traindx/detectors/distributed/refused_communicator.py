"""NCCL could not make or use its communicator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

MESSAGE = re.compile(
    r"NCCL (?:error|Error)\b.{0,300}|nccl(?:System|UnhandledCuda|Internal)Error", re.S
)
SYSTEM = re.compile(r"unhandled system error|ncclSystemError")
DEVICE = re.compile(r"unhandled cuda error|ncclUnhandledCudaError|Cuda failure")
# what NCCL itself adds of the call that failed
NETWORK = re.compile(
    r"Cannot assign requested address|No route to host|Network is unreachable|Connection refused"
    r"|Connection timed out|socketStartConnect|No such device|no socket interface found"
)
ROOM = re.compile(r"/dev/shm|shm.{0,40}(?:fail|error)|No space left on device|nccl-\w{6}")
MEMORY = re.compile(r"out of memory")
DRIVER = re.compile(r"driver version|initialization error|unknown error|no kernel image|mapping of")


@detector(
    needs=("failure",),
    suggests=("rendezvous-failure", "shared-memory-exhausted", "version-mismatch", "device-shared",
              "activation-memory"),
)  # fmt: skip
def check(run: Run) -> Iterator[Finding]:
    """The library for collectives fails before or in the first of them.

    ## What it detects
    "NCCL error … unhandled system error" and "unhandled cuda error". What the library adds under
    "Last error" decides: an address that cannot be reached, a /dev/shm that is too small, a driver
    that does not fit, a device that is full. Without it, only candidates are named.

    ## Why it matters
    Model and data are not at fault: the machines, the container or the installation are.

    ## What to do
    Run once with `NCCL_DEBUG=INFO` and read the first WARN. Name the network with
    `NCCL_SOCKET_IFNAME`; give a container `--ipc=host` or a larger `--shm-size`.

    ## When it is wrong
    A rank that failed before leaves the others with such an error as well.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure = hit[0]
    text = failure.message
    kinds = (SYSTEM, DEVICE)
    if not any(kind.search(text) for kind in kinds):
        return
    reason, guesses = _read(text)
    yield explain(run, failure, f"NCCL cannot connect the ranks: {reason}", suggests=guesses)


def _read(text: str) -> tuple[str, Mapping[str, Strength]]:
    if (found := NETWORK.search(text)) is not None:
        return f"the network ({found[0]})", {"rendezvous-failure": Strength.STRONG}
    if (found := ROOM.search(text)) is not None:
        return f"shared memory ({found[0]})", {"shared-memory-exhausted": Strength.STRONG}
    if MEMORY.search(text):
        weights = {"device-shared": Strength.MODERATE, "activation-memory": Strength.MODERATE}
        return "a device is full", weights
    if DEVICE.search(text):
        found = DRIVER.search(text)
        weights = {"version-mismatch": Strength.MODERATE, "device-shared": Strength.WEAK}
        return f"a call of CUDA failed{f' ({found[0]})' if found else ''}", weights
    return "a call of the system failed: the network, or /dev/shm", {
        "rendezvous-failure": Strength.MODERATE,
        "shared-memory-exhausted": Strength.MODERATE,
        "version-mismatch": Strength.WEAK,
    }


_ERROR = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled "

FIRES = {
    "an address": make_failed_run(
        f"{_ERROR}system error, NCCL version 2.18.1\nncclSystemError: System call failed.\nLast "
        "error:\nsocketStartConnect: Connect to 10.0.0.7<57829> failed : No route to host",
        "model = DDP(model)",
    ),
    "nothing said": make_failed_run(f"{_ERROR}cuda error, NCCL version 2.10.3"),
}

SILENT = {
    "near miss: a rank that waited": make_failed_run(
        "torch.distributed.DistBackendError: Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600013 milliseconds"
    ),
    "near miss: two ranks on one device": make_failed_run(
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1275, invalid usage, NCCL version 2.14\n"
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3b000"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
