"""The ranks did not find each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Failure, Frame, Run, make_run
from traindx.registry import detector
from traindx.source.errors import explain, is_joining, make_failed_run, match_root

PORT = re.compile(
    r"server socket (?:has failed to listen|cannot be initialized).{0,200}|EADDRINUSE"
    r"|[Aa]ddress already in use",
    re.DOTALL,
)
NAME = re.compile(
    r"hostname.{0,80}(?:could not|cannot) be (?:resolved|retrieved)|Name or service not known"
    r"|Temporary failure in name resolution|gai error|getaddrinfo",
)
TIME = re.compile(
    r"client socket has timed out after (\d+)(?:s|ms)?(?:.{0,60}?connect to \(?([\w.\-]+), (\d+))?"
    r"|connect\(\) timed out(?:\. Original timeout was (\d+))?|Rendezvous.{0,20}timed out"
    r"|RendezvousTimeout|Timed out after \d+ seconds waiting for (?:worker|client)s"
    r"|client socket has failed to connect|wait for clients|Connection refused"
)
# the key-value store waited for keys that the ranks which did not come would have written
STORE = re.compile(
    r"wait timeout after (\d+)ms|Timed out initializing process group in store based"
)
SETTINGS = re.compile(
    r"environment variable (\w+) expected|Error initializing torch\.distributed using (\w+)://"
    r"|rank (\d+) .{0,30}world.?size (\d+)|Invalid rank"
)
GROUP = re.compile(
    r"c10d|TCPStore|[Rr]endezvous|[Pp]rocess ?[Gg]roup|hostname|\[\w*socket|MASTER_|torch"
    r"|Dist\w+Error"
)
OTHERS = re.compile(
    r"/(?:urllib3|requests|httpx|httpcore|aiohttp|http|urllib|wandb|mlflow|huggingface_hub|fsspec"
    r"|botocore|tensorboard|werkzeug|gradio|uvicorn|socketserver)(?:/|\.py$)"
)
NUMBER = re.compile(r"port:? ?'?(\d{2,5})|\[[^\]]*\]:(\d{2,5})|:(\d{2,5})\b")
TYPES = ("RendezvousTimeoutError", "RendezvousConnectionError", "RendezvousClosedError")


@detector(needs=("failure",), suggests=("rendezvous-failure",))
def check(run: Run) -> Iterator[Finding]:
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
    hit = match_root(run, PORT, NAME, SETTINGS, TIME)
    if hit is None and (late := match_root(run, STORE)) is not None and is_joining(late[0]):
        hit = late
    if hit is None:
        hit = match_root(run, re.compile(""), types=TYPES)
    if hit is None or not _is_of_ranks(*hit):
        return
    failure, found = hit
    number = NUMBER.search(failure.message)
    port = f" {next(g for g in number.groups() if g)}" if number is not None else ""
    if found.re is PORT:
        claim = f"The port{port} of the rendezvous is taken"
    elif found.re is NAME:
        claim = "The address of the rendezvous does not resolve"
    elif found.re is SETTINGS:
        missing = f": {found[1]} is not set" if found[1] else ""
        claim = f"The settings of the process group are incomplete{missing}"
    elif found.re is STORE:
        claim = "The process group was given up: fewer ranks joined than were announced"
    else:
        claim = f"The ranks did not meet in time{f', at port{port}' if port else ''}"
    yield explain(run, failure, claim, shows="rendezvous-failure")


def _is_of_ranks(failure: Failure, found: re.Match[str]) -> bool:
    """Tell ranks from a tracker, a download or a web server, which use sockets as well."""
    files = [frame.file.replace("\\", "/") for frame in failure.frames]
    if any(OTHERS.search(file) for file in files):
        return False
    if found.re is not NAME and found[0] != "Connection refused":
        return True
    is_joined = is_joining(failure) or any("torch/distributed" in file for file in files)
    return is_joined or failure.rank is not None or GROUP.search(_told(failure)) is not None


def _told(failure: Failure) -> str:
    return f"{failure.type}: {failure.message}"


FIRES = {
    "a port that is taken": make_failed_run(
        "RuntimeError: The server socket has failed to listen on any local network address. The "
        "server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."
    ),
    "too late": make_failed_run(
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while "
        "trying to connect to (node-0, 29500)."
    ),
    "more ranks announced than started": make_failed_run(
        "torch.distributed.DistStoreError: wait timeout after 20000ms, keys: /default_pg/0//cpu/0",
        "dist.init_process_group('gloo', world_size=3, rank=rank)",
    ),
    "no variable": make_failed_run(
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment "
        "variable RANK expected, but not set"
    ),
}

SILENT = {
    "near miss: a collective that timed out": make_failed_run(
        "RuntimeError: Timed out waiting 1800000ms for recv operation to complete"
    ),
    "near miss: a subgroup that not all ranks made": make_failed_run(
        "torch.distributed.DistStoreError: wait timeout after 20000ms, keys: /1//cpu/0",
        "group = dist.new_group([0, 1])",
    ),
    "near miss: a tracker that finds no network": make_run(
        failures=[
            Failure(
                "socket.gaierror",
                "[Errno -2] Name or service not known",
                "train.log",
                "line 90",
                (Frame("/usr/lib/python3/site-packages/urllib3/connection.py", 174, "_new_conn"),),
            )
        ]
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
