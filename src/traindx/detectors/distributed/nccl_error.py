from traindx.analysis.errors.messages import causes_in, findings
from traindx.analysis.errors.process_group_messages import COMMUNICATOR
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=causes_in(COMMUNICATOR))
def check(run: Run) -> Findings:
    """NCCL fails before or in the first collective.

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
    yield from findings(run, COMMUNICATOR)


_ERROR = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled "

FIRES = {
    "an address": failed(
        f"{_ERROR}system error, NCCL version 2.18.1\nncclSystemError: System call failed.\nLast "
        "error:\nsocketStartConnect: Connect to 10.0.0.7<57829> failed : No route to host",
        "model = DDP(model)",
    ),
    "nothing said": failed(f"{_ERROR}cuda error, NCCL version 2.10.3"),
}

SILENT = {
    "near miss: a rank that waited": failed(
        "torch.distributed.DistBackendError: Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600013 milliseconds"
    ),
    "near miss: two ranks on one device": failed(
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1275, invalid usage, NCCL version 2.14\n"
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3b000"
    ),
    "another error": failed("KeyError: 'label'"),
}
