"""What processes that train together say: rendezvous, process groups, collectives, DDP, NCCL."""

from __future__ import annotations

from traindx.analysis.errors.messages import KnownError, Message, Table, known_error, read
from traindx.analysis.errors.root_failure import is_joining, last_burst
from traindx.model.run import Run

COLLECTIVES: Table = (
    Message(
        r"Detected mismatch between collectives on ranks|collective.{0,40}(?:mismatch|not match)"
        r"|verifyWorkers|op\.preamble\.length <= op\.nbytes",
        "The ranks call different collectives, or the same one with different shapes",
        shows="collective-mismatch",
        kind="different",
    ),
    Message(
        r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)(?:, NumelIn=(?P<size>\d+), "
        r"NumelOut=\d+)?.{0,20}?Timeout\(ms\)=(?P<limit>\d+)\)(?: ran for (?P<waited>\d+))?",
        "A collective timed out: {operation} number {number}[[ of {elements} elements]] waited "
        "{seconds} s (timeout {allowed} s), and no rank reports an error",
        moderate="collective-mismatch uneven-inputs",
        weak="straggler-rank",
        kind="work",
    ),
    # the other end is not late but gone
    Message(
        r"(?P<said>timeout caused pair closure|Connection (?:closed|reset) by peer|ncclRemoteError"
        r"|remote process exited or there was a network error)",
        "A collective failed ({said}), and no rank reports an error of its own",
        moderate="rank-failed-first collective-mismatch uneven-inputs",
        weak="straggler-rank",
    ),
    Message(
        r"(?P<said>Watchdog caught collective operation timeout|Timed out waiting \d+ms for "
        r"(?:send|recv)|timed out in blocking wait|wait timeout after \d+ms"
        r"|(?:Socket|socket) Timeout)",
        "A collective failed ({said}), and no rank reports an error of its own",
        moderate="collective-mismatch uneven-inputs",
        weak="straggler-rank",
    ),
)


def collective_times(known: KnownError) -> dict[str, str]:
    """Return how long a collective waited, how long it may, and its size."""
    if known.kind != "work":
        return {}
    waited = int(known["waited"] or known["limit"]) / 1000
    elements = f"{known.number('size'):,}" if known["size"] else ""
    allowed = str(known.number("limit") // 1000)
    return {"seconds": f"{waited:.0f}", "allowed": allowed, "elements": elements}


_LATE = "The rendezvous timed out: the ranks could not connect[[ to port {port}]]"
RENDEZVOUS: Table = (
    Message(
        r"(?s)server socket (?:has failed to listen|cannot be initialized)|EADDRINUSE"
        r"|[Aa]ddress already in use",
        "The rendezvous port[[ {port}]] is already in use",
        shows="rendezvous-failure",
    ),
    Message(
        r"hostname.{0,80}(?:could not|cannot) be (?:resolved|retrieved)|Name or service not known"
        r"|Temporary failure in name resolution|gai error|getaddrinfo",
        "The rendezvous address cannot be resolved",
        shows="rendezvous-failure",
        kind="any socket",
    ),
    Message(
        r"environment variable (?P<name>\w+) expected"
        r"|Error initializing torch\.distributed using \w+://"
        r"|rank (\d+) .{0,30}world.?size (\d+)|Invalid rank",
        "The process group settings are incomplete[[: {name} is not set]]",
        shows="rendezvous-failure",
    ),
    Message(
        r"client socket has timed out after \d+|connect\(\) timed out|Rendezvous.{0,20}timed out"
        r"|RendezvousTimeout|Timed out after \d+ seconds waiting for (?:worker|client)s"
        r"|client socket has failed to connect|wait for clients",
        _LATE,
        shows="rendezvous-failure",
    ),
    Message(r"Connection refused", _LATE, shows="rendezvous-failure", kind="any socket"),
    # the key-value store waited for keys that the ranks which did not come would have written
    Message(
        r"wait timeout after \d+ms|Timed out initializing process group in store based",
        "Fewer ranks joined the process group than world_size",
        shows="rendezvous-failure",
        kind="joining",
    ),
    Message(
        "",
        _LATE,
        shows="rendezvous-failure",
        types="RendezvousTimeoutError RendezvousConnectionError RendezvousClosedError",
    ),
)
PORT_NUMBER: Table = (
    Message(
        r"port:? ?'?(?P<port>\d{2,5})|\[[^\]]*\]:(?P<port2>\d{2,5})|:(?P<port3>\d{2,5})\b"
    ),
)  # fmt: skip
# words that only processes which train together use
OF_RANKS: Table = (
    Message(
        r"c10d|TCPStore|[Rr]endezvous|[Pp]rocess ?[Gg]roup|hostname|\[\w*socket|MASTER_|torch"
        r"|Dist\w+Error"
    ),
)
# a tracker, a download or a web server, which use sockets as well
OTHER_SOCKETS: Table = (
    Message(
        r"/(?:urllib3|requests|httpx|httpcore|aiohttp|http|urllib|wandb|mlflow|huggingface_hub"
        r"|fsspec|botocore|tensorboard|werkzeug|gradio|uvicorn|socketserver)(?:/|\.py$)"
    ),
)
MISPLACED_PROCESS: Table = (
    Message(
        r"Default process group has not been initialized",
        "The process group is used before init_process_group, or without a launcher",
        shows="api-misuse",
    ),
    Message(
        r"trying to initialize the default process group twice",
        "The process group is initialised twice",
        shows="api-misuse",
    ),
    Message(
        r"Duplicate GPU detected ?: ?rank (?P<first>\d+) and rank (?P<second>\d+) both on "
        r"(?:CUDA )?device (?P<device>\w+)",
        "Ranks {first} and {second} use the same GPU {device}; torch.cuda.set_device is missing",
        shows="api-misuse",
    ),
    Message(
        r"invalid device ordinal|Invalid device id|device >= 0 && device < num_gpus",
        "A GPU index is used that this process cannot see",
        shows="api-misuse",
    ),
    Message(
        r"Torch not compiled with CUDA enabled",
        "CUDA is requested, but this torch is a CPU-only build",
        shows="version-mismatch",
    ),
    Message(
        r"No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device is detected",
        "CUDA is requested, but this process sees no GPU",
        shows="api-misuse",
    ),
)
PARAMETERS_WITHOUT_GRADIENT: Table = (
    Message(
        r"Expected to have finished reduction in the prior iteration",
        "DDP got no gradient for {which}",
        shows="ddp-unused-parameters",
        kind="unused",
    ),
    Message(
        r"(?s)(?:Expected to mark a variable ready only once|has been marked as ready twice)"
        r"(?:.*?Parameter at index (?P<index>\d+)(?: with name (?P<name>[\w.]+))? has been "
        r"marked)?",
        "DDP got the gradient of [[parameter {index}||a parameter]][[ {name}]] twice in one step: "
        "reentrant checkpointing, a module used twice, or two backward passes",
        strong="api-misuse",
    ),
)
NAMED_PARAMETERS: Table = (
    Message(
        r"[Pp]arameters which did not receive grad for rank (?P<rank>\d+): (?P<names>[\w., ]+)"
    ),
    Message(
        r"[Pp]arameter indices which did not receive grad for rank (?P<rank>\d+): "
        r"(?P<indices>[\d ]+(?:\.\.\.)?)"
    ),
)


def parameters_without_gradient(known: KnownError) -> dict[str, str]:
    """Return which parameters DDP waited for, as far as the message names them."""
    found = read(known.failure.message, NAMED_PARAMETERS)
    if found is None:
        return {"which": "all parameters; set TORCH_DISTRIBUTED_DEBUG=DETAIL to see which"}
    words = found[1]
    if "names" in words:
        listed = words["names"].replace(",", " ").rstrip(" .").split()
        more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
        return {"which": f"{', '.join(listed[:5])}{more} on rank {words['rank']}"}
    listed = words["indices"].split()
    which = f"{len(listed)} parameters on rank {words['rank']}: number {', '.join(listed[:8])}"
    return {"which": which}


def port(known: KnownError) -> dict[str, str]:
    """Return the port that the message names."""
    number = read(known.failure.message, PORT_NUMBER)
    return {} if number is None else number[1]


# that NCCL fails, by itself (system) or by the device, and what it adds of the call that failed
_NCCL = r"(?s)\A(?=.*(?:NCCL [eE]rror\b|nccl(?:System|UnhandledCuda|Internal)Error))"
_DEVICE = r"(?=.*(?:unhandled cuda error|ncclUnhandledCudaError|Cuda failure))"
_EITHER = (
    r"(?=.*(?:unhandled (?:cuda|system) error|nccl(?:UnhandledCuda|System)Error|Cuda failure)).*?"
)
COMMUNICATOR: Table = (
    Message(
        _NCCL + _EITHER + r"(?P<said>Cannot assign requested address|No route to host|Network is "
        r"unreachable|Connection refused|Connection timed out|socketStartConnect|No such device"
        r"|no socket interface found)",
        "NCCL cannot connect the ranks over the network ({said})",
        strong="rendezvous-failure",
    ),
    Message(
        _NCCL + _EITHER + r"(?P<said>/dev/shm|shm.{0,40}(?:fail|error)|No space left on device"
        r"|nccl-\w{6})",
        "NCCL ran out of shared memory ({said})",
        strong="shared-memory-exhausted",
    ),
    Message(
        _NCCL + _EITHER + "out of memory",
        "NCCL cannot start because GPU memory is full",
        moderate="device-shared activation-memory",
    ),
    Message(
        _NCCL + _DEVICE + r"(?:.*?(?P<said>driver version|initialization error|unknown error"
        r"|no kernel image|mapping of))?",
        "NCCL failed in a CUDA call[[ ({said})]]",
        moderate="version-mismatch",
        weak="device-shared",
    ),
    Message(
        _NCCL + _EITHER,
        "NCCL failed in a system call, on the network or in /dev/shm",
        moderate="rendezvous-failure shared-memory-exhausted",
        weak="version-mismatch",
    ),
)


def waits_by_rank(run: Run) -> dict[int | None, set[tuple[str, str]]]:
    """The collectives that each rank waits in, by number and operation."""
    waits: dict[int | None, set[tuple[str, str]]] = {}
    for each in last_burst(run):
        known = known_error(run, COLLECTIVES, each)
        if known is not None and known.kind == "work":
            waits.setdefault(each.rank, set()).add((known["number"], known["operation"]))
    return waits


def is_between_ranks(known: KnownError) -> bool:
    """Tell ranks from a tracker, a download or a web server, which use sockets as well."""
    failure = known.failure
    files = [frame.file.replace("\\", "/") for frame in failure.frames]
    if known.kind == "joining" and not is_joining(failure):
        return False
    if any(read(file, OTHER_SOCKETS) for file in files):
        return False
    if known.kind != "any socket" or failure.rank is not None or is_joining(failure):
        return True
    said = f"{failure.type}: {failure.message}"
    return any("torch/distributed" in file for file in files) or read(said, OF_RANKS) is not None
