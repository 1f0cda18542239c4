"""What the surroundings of a run say: versions, compilers, device libraries, files, disks."""

from __future__ import annotations

from traindx.analysis.errors.messages import OTHERS, Message, Table

COMPILER_TOOLS: Table = (
    Message(
        r"(?P<said>Failed to find C compiler|No working C\+\+ compiler|Cannot find a working triton"
        r" installation|fatal error: Python\.h|Compiler: \S+ is not found|gcc.{0,40}not found"
        r"|ptxas|too old to be supported by the triton)",
        "A tool that torch.compile needs is missing: {said}",
        shows="version-mismatch",
    ),
)
_SAID = r"^(?:Unsupported:? ?)?(?:\s*(?P<said>[^\n]{2,159}[^\n\s.]))?"
_COMPILED = (
    "BackendCompilerFailed InternalTorchDynamoError TorchRuntimeError InductorError UserError "
    "LoweringException CppCompileError InvalidCxxCompiler TritonMissing"
)
COMPILER: Table = (
    *COMPILER_TOOLS,
    Message(
        _SAID,
        "The code cannot be captured by torch.compile[[: {said}]]",
        strong="graph-breaks",
        types="Unsupported",
    ),
    Message(
        _SAID,
        "The torch.compile recompile limit is reached[[: {said}]]",
        shows="recompilation",
        types="FailOnRecompileLimitHit",
    ),
    Message(
        _SAID + r"(?=(?:.|\n)*(?:recompile_limit|cache_size_limit))",
        "The torch.compile recompile limit is reached[[: {said}]]",
        shows="recompilation",
        types=_COMPILED,
    ),
    Message(
        _SAID,
        "Compilation with torch.compile failed ({type})[[: {said}]]",
        moderate="api-misuse version-mismatch",
        weak="graph-breaks",
        types=_COMPILED,
    ),
)
_IN = r"(?:(?=(?:.|\n)*when calling `?(?P<call>\w+)))?"
DEVICE_LIBRARY: Table = (
    Message(r"(?:CUBLAS|CUDNN|CUSOLVER)_STATUS_\w*ALLOC_FAILED", kind=OTHERS),
    Message(
        r"\b(?P<status>(?:CUBLAS_STATUS|CUDNN_STATUS|CUSOLVER_STATUS)_(?:NOT_INITIALIZED"
        r"|EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR))\b" + _IN,
        "{status}[[ in {call}]] hides an earlier error, most likely [[{table}||an index or label "
        "out of range, or a full GPU]]",
        moderate="index-out-of-range label-out-of-range activation-memory",
        weak="version-mismatch",
        kind="hidden",
    ),
    Message(
        r"\b(?P<status>(?:CUBLAS|CUDNN|CUSOLVER)_STATUS_INVALID_VALUE)\b" + _IN,
        "The CUDA library rejects the sizes or dtypes of a tensor[[ in {call}]] ({status})",
        moderate="shape-mismatch version-mismatch",
    ),
    Message(
        r"\b(?P<status>CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|CUFFT_\w+|CUSOLVER_STATUS_\w+"
        r"|CUDNN_BACKEND_\w+)" + _IN,
        "The CUDA library does not support these tensors[[ in {call}]] ({status})",
        moderate="api-misuse version-mismatch",
    ),
    Message(
        r"Unable to find a valid cuDNN algorithm|GET was unable to find an engine",
        "The cuDNN library found no algorithm that fits, usually because GPU memory is full",
        strong="activation-memory",
        weak="version-mismatch",
    ),
    Message(
        r"Failed to get convolution algorithm|cuDNN failed to initialize",
        "The cuDNN library failed to initialize: GPU memory is full, or the version is wrong",
        moderate="activation-memory version-mismatch",
        weak="device-shared",
    ),
)
FULL_DISK: Table = (
    Message(
        r"(?s)(?:No space left on device(?!: '?/dev/shm)|Disk quota exceeded|\[Errno (?:28|122)\]"
        r"|database or disk is full|There is not enough space on the disk)"
        r"(?:.*?'(?P<path>[^']+)')?",
        "The disk is full[[ while writing {path}]]",
        shows="disk-full",
    ),
)
_SIGNAL = r"(?:exitcode\s*:\s*-|Signal |terminated by signal |got signal: )(?P<signal>(?:{})\b)"
_KILLED = "The process[[ of rank {rank}]] was killed with SIGKILL and left no error"
ENDINGS: Table = (
    *(
        Message(
            r"^(?P<said>[^\n]{0,100})",
            f"The process crashed below Python with a {crash} ({{said}})",
            moderate="version-mismatch",
            weak="worker-crash",
            types=kind,
        )
        for kind, crash in {
            "SegmentationFault": "segmentation fault",
            "FatalPythonError": "fatal error",
            "IllegalInstruction": "illegal instruction",
            "FloatingPointException": "floating point exception",
        }.items()
    ),
    Message("", _KILLED, types="Killed", kind="killed"),
    Message(_SIGNAL.format("9|SIGKILL"), _KILLED, kind="killed"),
    Message(
        _SIGNAL.format("15|10|SIGTERM|SIGUSR1|SIGXCPU"),
        "The process was stopped from outside (signal {signal})",
        strong="killed-by-host",
        kind="stopped",
    ),
    Message(
        _SIGNAL.format("7"),
        "The process crashed with a bus error (signal 7), mostly for lack of shared memory or disk",
        strong="shared-memory-exhausted",
        weak="disk-full",
    ),
    Message(
        _SIGNAL.format("6"),
        "The process aborted below Python (signal 6), and its last message is not in the log",
        weak="version-mismatch index-out-of-range",
    ),
    Message(
        _SIGNAL.format("11"),
        "The process crashed below Python with a segmentation fault (signal 11)",
        moderate="version-mismatch",
    ),
)
HOST_OUT_OF_MEMORY: Table = (
    Message(r"(?i)out of memory|oom.?kill|OOM|Exceeded .{0,20}memory limit"),
)
OUT_OF_TIME: Table = (Message(r"(?i)time limit|preempt"),)
VERSIONS: Table = (
    Message(
        r"CUDA driver version is insufficient|NVIDIA driver on your system is too old \(found "
        r"version (?P<version>\d+)\)|forward compatibility was attempted on non supported HW"
        r"|unsupported display driver",
        "The NVIDIA driver[[ ({version})]] is too old for this CUDA build",
        shows="version-mismatch",
    ),
    Message(
        r"no kernel image is available for execution|CUDA capability (?P<device>sm_\d+) is not "
        r"compatible|invalid device function|unsupported PTX version",
        "This torch build has no kernels for this GPU[[ ({device})]]",
        shows="version-mismatch",
    ),
    Message(
        r"undefined symbol: (?P<name>\w+)|(?P<name2>lib[\w.+-]+\.so[\w.]*): cannot open shared "
        r"object file|version [`'](?P<name3>[\w.]+)' not found|DLL load failed(?: while importing "
        r"(?P<name4>\w+))?|numpy\.dtype size changed|compiled using NumPy 1\.x"
        r"|compiled against API version",
        "A compiled library is missing or of another version[[: {name}]]",
        shows="version-mismatch",
    ),
    Message(
        r"operator torchvision::\w+ does not exist|Couldn't load custom C\+\+ ops",
        "The installed torchvision was built for another torch version",
        shows="version-mismatch",
    ),
    # libraries say it themselves: torch, NumPy 2, Lightning, transformers
    Message(
        r"(?P<said>deprecated since version [\w.]+ and is now removed"
        r"|deprecated in v?\d[\w.]*[^.\n]{0,60}(?:removed|no longer accessible)"
        r"|(?:was|were|is|are|has been|have been) removed (?:in|from|since|as of) (?:the )?"
        r"(?:(?:version |v)?\d[\w.]*\w|(?:NumPy|Num[Pp]y|[Tt]orch|PyTorch|Lightning) [\d.]+\d))",
        "The installed version no longer has this function: {said}",
        shows="version-mismatch",
    ),
    Message(
        r"cannot import name '(?P<name>\w+)' from (?:partially initialized module )?"
        r"'(?P<package>[\w.]+)'",
        "The installed {package} has no {name}",
        strong="version-mismatch",
        weak="api-misuse",
    ),
    Message(
        r"No module named '(?P<package>[\w.]+)'",
        "The package {package} is not installed in this environment",
        strong="version-mismatch",
        weak="api-misuse",
    ),
)
_FILES = "FileNotFoundError RuntimeError OSError NotADirectoryError"
_ABSENT = "The file or folder {path} does not exist"
_RELATIVE = _ABSENT + ", relative to the working directory"
_FOLDER = (
    r"(?:Couldn't find any class folder in |Found 0 (?:files|images) in (?:subfolders of: )?"
    r"|(?:Parent directory|Dataset) (?=\S+ (?:does not exist|not found)))"
)
_NO_FILE = r"No such file or directory:? ?"
_ROOT = r"(?:[/~]|.:[/\\])"
MISSING_FILE: Table = tuple(
    Message(pattern, claim, strong="api-misuse", types=_FILES)
    for pattern, claim in (
        (rf"{_NO_FILE}(?:'(?P<path>{_ROOT}[^']*)'|\"(?P<path2>{_ROOT}[^\"]*)\")", _ABSENT),
        (rf"{_NO_FILE}(?:'(?P<path>[^']+)'|\"(?P<path2>[^\"]+)\")", _RELATIVE),
        (_NO_FILE, "A file does not exist"),
        (rf"{_FOLDER}(?P<path>{_ROOT}\S*)", _ABSENT),
        (rf"{_FOLDER}(?P<path>\S+)", _RELATIVE),
    )
)
_JSON = "A {kind} cannot be written to JSON; convert it with "
UNSERIALISABLE: Table = tuple(
    Message(
        rf"Object of type (?P<kind>{kind}) is not JSON serializable", _JSON + cure,
        shows="api-misuse",
    )
    for kind, cure in (
        ("Tensor", ".item() for one value, .tolist() for many"),
        ("ndarray", ".tolist()"),
        (r"(?:float|u?int)\d\w*", "float(…) or int(…)"),
        (r"\w+", "str(…)"),
    )
)  # fmt: skip
