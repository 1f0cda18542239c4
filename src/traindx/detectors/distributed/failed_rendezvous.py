from traindx.analysis.errors.messages import findings
from traindx.analysis.errors.process_group_messages import RENDEZVOUS, is_between_ranks, port
from traindx.examples import Frame, failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("rendezvous-failure",))
def check(run: Run) -> Findings:
    """The processes of a distributed run do not find each other.

    ## What it detects
    A port that is taken, a host name that does not resolve, a connection that is refused or times
    out, missing environment variables, ranks that were announced and never joined (a timeout of
    the store within `init_process_group`), and torchrun's rendezvous errors.

    ## Why it matters
    Nothing of the training has run yet: the fault is in address, port, number of processes or
    network, not in the model.

    ## What to do
    A taken port: another run or the rest of one, choose another `--master_port` or use
    `--standalone`. A timeout: the address must be reachable from all nodes, and as many processes
    must start as were announced.

    ## When it is wrong
    If one rank failed before it could join, the timeout of the others is a consequence.
    """
    yield from findings(run, RENDEZVOUS, words=port, when=is_between_ranks)


FIRES = {
    "a port that is taken": failed(
        "RuntimeError: The server socket has failed to listen on any local network address. The "
        "server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."
    ),
    "too late": failed(
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while "
        "trying to connect to (node-0, 29500)."
    ),
    "more ranks announced than started": failed(
        "torch.distributed.DistStoreError: wait timeout after 20000ms, keys: /default_pg/0//cpu/0",
        "dist.init_process_group('gloo', world_size=3, rank=rank)",
    ),
    "no variable": failed(
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment "
        "variable RANK expected, but not set"
    ),
}

SILENT = {
    "near miss: a collective that timed out": failed(
        "RuntimeError: Timed out waiting 1800000ms for recv operation to complete"
    ),
    "near miss: a subgroup that not all ranks made": failed(
        "torch.distributed.DistStoreError: wait timeout after 20000ms, keys: /1//cpu/0",
        "group = dist.new_group([0, 1])",
    ),
    "near miss: a tracker that finds no network": failed(
        "socket.gaierror: [Errno -2] Name or service not known",
        frames=(Frame("/usr/lib/python3/site-packages/urllib3/connection.py", 174, "_new_conn"),),
    ),
    "another error": failed("KeyError: 'label'"),
}
