"""What processes that train together say: rendezvous, process groups, collectives, DDP, NCCL."""

from __future__ import annotations

from traindx.analysis.errors.messages import Message, Table

COLLECTIVES: Table = (
    Message(
        r"Detected mismatch between collectives on ranks|collective.{0,40}(?:mismatch|not match)"
        r"|verifyWorkers|op\.preamble\.length <= op\.nbytes",
        "The ranks call different collectives, or with different shapes",
        shows="collective-mismatch",
        kind="different",
    ),
    Message(
        r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)(?:, NumelIn=(?P<size>\d+), "
        r"NumelOut=\d+)?.{0,20}?Timeout\(ms\)=(?P<limit>\d+)\)(?: ran for (?P<waited>\d+))?",
        "A collective was given up: {operation} number {number}[[ of {elements} elements]] waited "
        "{seconds} s of {allowed} s, and no rank says why",
        moderate="collective-mismatch uneven-inputs",
        weak="straggler-rank",
        kind="work",
    ),
    # the other end is not late but gone
    Message(
        r"(?P<said>timeout caused pair closure|Connection (?:closed|reset) by peer|ncclRemoteError"
        r"|remote process exited or there was a network error)",
        "A collective was given up ({said}), and no rank says why",
        moderate="rank-failed-first collective-mismatch uneven-inputs",
        weak="straggler-rank",
    ),
    Message(
        r"(?P<said>Watchdog caught collective operation timeout|Timed out waiting \d+ms for "
        r"(?:send|recv)|timed out in blocking wait|wait timeout after \d+ms"
        r"|(?:Socket|socket) Timeout)",
        "A collective was given up ({said}), and no rank says why",
        moderate="collective-mismatch uneven-inputs",
        weak="straggler-rank",
    ),
)
_LATE = "The ranks did not meet in time[[, at port {port}]]"
RENDEZVOUS: Table = (
    Message(
        r"(?s)server socket (?:has failed to listen|cannot be initialized)|EADDRINUSE"
        r"|[Aa]ddress already in use",
        "The port[[ {port}]] of the rendezvous is taken",
        shows="rendezvous-failure",
    ),
    Message(
        r"hostname.{0,80}(?:could not|cannot) be (?:resolved|retrieved)|Name or service not known"
        r"|Temporary failure in name resolution|gai error|getaddrinfo",
        "The address of the rendezvous does not resolve",
        shows="rendezvous-failure",
        kind="any socket",
    ),
    Message(
        r"environment variable (?P<name>\w+) expected"
        r"|Error initializing torch\.distributed using \w+://"
        r"|rank (\d+) .{0,30}world.?size (\d+)|Invalid rank",
        "The settings of the process group are incomplete[[: {name} is not set]]",
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
        "The process group was given up: fewer ranks joined than were announced",
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
        "A process group is used before init_process_group, or without a launcher",
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
        "Ranks {first} and {second} are both on GPU {device}: set_device is missing",
        shows="api-misuse",
    ),
    Message(
        r"invalid device ordinal|Invalid device id|device >= 0 && device < num_gpus",
        "A GPU number is used that this process does not see",
        shows="api-misuse",
    ),
    Message(
        r"Torch not compiled with CUDA enabled",
        "This torch is a CPU build, and CUDA is asked for",
        shows="version-mismatch",
    ),
    Message(
        r"No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device is detected",
        "A GPU is asked for, and this process sees none",
        shows="api-misuse",
    ),
)
PARAMETERS_WITHOUT_GRADIENT: Table = (
    Message(
        r"Expected to have finished reduction in the prior iteration",
        "No gradient reached DDP for {which}",
        shows="ddp-unused-parameters",
        kind="unused",
    ),
    Message(
        r"(?s)(?:Expected to mark a variable ready only once|has been marked as ready twice)"
        r"(?:.*?Parameter at index (?P<index>\d+)(?: with name (?P<name>[\w.]+))? has been "
        r"marked)?",
        "The gradient of [[parameter {index}||a parameter]][[ {name}]] reached DDP twice in one "
        "step: reentrant checkpointing, a module that is used twice, or two backward passes",
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
        "NCCL cannot connect the ranks: the network ({said})",
        strong="rendezvous-failure",
    ),
    Message(
        _NCCL + _EITHER + r"(?P<said>/dev/shm|shm.{0,40}(?:fail|error)|No space left on device"
        r"|nccl-\w{6})",
        "NCCL cannot connect the ranks: shared memory ({said})",
        strong="shared-memory-exhausted",
    ),
    Message(
        _NCCL + _EITHER + "out of memory",
        "NCCL cannot connect the ranks: a device is full",
        moderate="device-shared activation-memory",
    ),
    Message(
        _NCCL + _DEVICE + r"(?:.*?(?P<said>driver version|initialization error|unknown error"
        r"|no kernel image|mapping of))?",
        "NCCL cannot connect the ranks: a call of CUDA failed[[ ({said})]]",
        moderate="version-mismatch",
        weak="device-shared",
    ),
    Message(
        _NCCL + _EITHER,
        "NCCL cannot connect the ranks: a call of the system failed: the network, or /dev/shm",
        moderate="rendezvous-failure shared-memory-exhausted",
        weak="version-mismatch",
    ),
)
