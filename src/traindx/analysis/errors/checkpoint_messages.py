"""What loading and saving say: files that are refused, cut off, or of another model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traindx.analysis.errors.messages import KnownError, Message, Table, read
from traindx.tracebacks import own_frames

_REFUSED = (
    r"(?:Unsupported (?:global: GLOBAL|class)|Trying to (?:load unsupported GLOBAL|call reduce for "
    r"unrecognized function)) "
)
_ALLOWED = "The checkpoint contains {name}, which torch.load(weights_only=True) refuses to load"
_NO_CHECKPOINT = "The file is not a checkpoint"
_QUOTED = re.compile(r'"([^"]+)"')

REFUSED_LOAD: Table = (
    Message(
        r"Attempting to deserialize object on (?:a )?(?:CUDA )?device(?: (?P<number>\d+))?",
        "The checkpoint was saved from [[GPU {number}||a GPU]], which this machine does not have",
        shows="api-misuse",
        kind="device",
    ),
    Message(
        _REFUSED + r"(?P<name>(?:os|posix|nt|subprocess|sys|builtins|__builtin__|shutil|socket"
        r"|runpy|webbrowser|pty|ctypes)(?:\.\w+)+)",
        "The checkpoint would run code when loaded: it calls {name}",
        shows="unsafe-checkpoint",
    ),
    # settings and numbers beside the weights; a class of torch is a layer of a model saved whole
    Message(
        _REFUSED + r"(?P<name>(?:numpy|argparse|collections|omegaconf|pathlib)(?:\.\w+)*)(?!\w)",
        _ALLOWED,
        strong="api-misuse",
        moderate="unsafe-checkpoint",
    ),
    # a class of a program: the file is a pickle of whole objects, whose code would run
    Message(
        _REFUSED + r"(?P<name>\w+(?:\.\w+)*)", _ALLOWED, strong="unsafe-checkpoint",
        weak="api-misuse",
    ),
    *(
        Message(
            rf"Unsupported operand {byte}\b",
            f"{_NO_CHECKPOINT}, but {what}",
            strong="corrupt-checkpoint",
        )
        for byte, what in {118: "a git-lfs pointer", 60: "an HTML page", 123: "JSON text",
                           10: "text"}.items()
    ),
    Message(
        r"Unsupported operand \d+|Please file an issue with the following",
        _NO_CHECKPOINT,
        strong="corrupt-checkpoint",
    ),
    # the words for a module that torch blocks
    Message(
        r"Weights only load failed",
        "The checkpoint contains more than weights, and torch.load refuses it",
        strong="unsafe-checkpoint",
        weak="api-misuse",
    ),
)  # fmt: skip
UNMATCHED_KEYS: Table = (
    Message(
        r"Error\(s\) in loading state_dict for (?P<model>\w+)",
        "The checkpoint does not match {model}: {missing} keys are missing and {unexpected} are "
        "unexpected{reason}",
        shows="state-dict-key-mismatch",
    ),
)
MISSING_KEYS: Table = (Message(r"Missing key\(s\) in state_dict: (?P<keys>.+)"),)
UNEXPECTED_KEYS: Table = (Message(r"Unexpected key\(s\) in state_dict: (?P<keys>.+)"),)
_SIZE = r"(?:torch\.Size\(\[[\d, ]*\]\)|\S+)"
_SHAPES = (  # a terminal may have wrapped it
    rf":\s+copying\s+a\s+param(?:eter)?\s+with\s+shape\s+(?P<saved>{_SIZE})\s+from\s+checkpoint,\s+"
    rf"the\s+shape\s+in\s+current\s+model\s+is\s+(?P<current>{_SIZE})"
)
_STATE = "The saved optimizer state has a different number of {what} than this optimizer"
MISMATCHED_TENSOR = Message(
    r"size\s+mismatch\s+for\s+(?P<name>(?:(?=[\w.]*(?P<position>(?i:pos)))"
    r"|(?=[\w.]*(?P<word>(?i:embed|wte|tok|vocab|lm_head)))|)[\w.]+)" + _SHAPES,
    "The shape of {name} is {saved} in the checkpoint, {current} in the model[[ ({difference})]]",
    shows="state-dict-shape-mismatch",
)
UNMATCHED_SHAPES: Table = (
    MISMATCHED_TENSOR,
    Message(
        r"contains a parameter group that doesn't match the size of optimizer's group",
        _STATE.format(what="parameters"),
        strong="state-dict-key-mismatch",
        weak="state-dict-shape-mismatch",
        kind="optimizer",
    ),
    Message(
        r"loaded state dict has a different number of parameter groups",
        _STATE.format(what="groups"),
        strong="state-dict-key-mismatch",
        weak="state-dict-shape-mismatch",
        kind="optimizer",
    ),
)
_OTHER_FILE = "The checkpoint file is empty, truncated or of another format"
UNREADABLE_ARCHIVE: Table = (
    Message(
        r"PytorchStreamWriter failed|write\(\): fd \d+ failed"
        r"|inline_container\.cc.{0,40}unexpected pos \d+ vs \d+",
        "Writing a checkpoint failed half-way, so the file is incomplete",
        strong="disk-full",
        weak="corrupt-checkpoint",
    ),
    Message(
        r"unexpected EOF, expected (?P<bytes>\d+)|PytorchStreamReader failed"
        r"|failed finding central directory|[Ii]nvalid magic number|not a ZIP archive"
        r"|[Ii]nvalid header or archive is corrupted|file in archive is not in a subdirectory"
        r"|MetadataIncompleteBuffer|HeaderTooLarge|storage has wrong (?:byte )?size"
        r"|unexpected pos \d+ vs \d+",
        "The checkpoint file is truncated or corrupted[[ ({bytes} bytes are missing)]]",
        shows="corrupt-checkpoint",
    ),
    Message(
        r"invalid load key, 'v'",
        "The checkpoint file is only a git-lfs pointer",
        strong="corrupt-checkpoint",
        types="EOFError UnpicklingError",
        kind="pickle",
    ),
    Message(
        r"invalid load key, '<'",
        "The checkpoint file is an HTML page",
        strong="corrupt-checkpoint",
        types="EOFError UnpicklingError",
        kind="pickle",
    ),
    Message(
        r"^Ran out of input|invalid load key, '.{1,6}'|pickle data was truncated|^$",
        _OTHER_FILE,
        strong="corrupt-checkpoint",
        types="EOFError UnpicklingError",
        kind="pickle",
    ),
)
CONTAINERS = frozenset(
    {"state_dict", "model", "model_state_dict", "optimizer", "epoch", "optimizer_state_dict", "net",
     "state", "args", "config", "global_step"}
)  # fmt: skip
ORIGINS = {
    "module.": "saved from DataParallel or DistributedDataParallel",
    "_orig_mod.": "saved from a model that torch.compile wraps",
    "model.": "saved from a Lightning or wrapper module",
}
LOADS = ("load", "restore", "resume", "from_pretrained", "serialization")


def unmatched_keys(known: KnownError) -> tuple[list[str], list[str]]:
    """Return the missing and the unexpected keys that a message lists."""
    found = [read(known.failure.message, table) for table in (MISSING_KEYS, UNEXPECTED_KEYS)]
    missing, unexpected = ([] if f is None else _QUOTED.findall(f[1]["keys"]) for f in found)
    return missing, unexpected


def why_unmatched(missing: Sequence[str], unexpected: Sequence[str]) -> tuple[str, str]:
    """Return what turns one set of keys into the other, and the prefix in the file if any."""
    held = ", ".join(sorted(CONTAINERS & set(unexpected)))
    if held:
        return f"; the file is a whole training state ({held}), and the weights are one entry", ""
    prefix = _prefix(unexpected, missing)
    if prefix:
        origin = f" ({ORIGINS[prefix]})" if prefix in ORIGINS else ""
        return f"; the file's keys start with {prefix}{origin}", prefix
    prefix = _prefix(missing, unexpected)
    if prefix:
        return f"; the model's keys start with {prefix}, the file's do not", ""
    if not unexpected:
        return f", such as {missing[0]}; the model has layers that the file does not have", ""
    if not missing:
        return f", such as {unexpected[0]}; the file has layers that the model does not have", ""
    return f", such as {missing[0]} (missing) and {unexpected[0]} (unexpected)", ""


def _prefix(longer: Sequence[str], shorter: Sequence[str]) -> str:
    """The prefix with which all of the longer keys stand for the shorter ones."""
    if not longer or not shorter:
        return ""
    first = next((k for k in longer if k.endswith("." + shorter[0])), "")
    prefix = first[: len(first) - len(shorter[0])] if first else ""
    known = set(longer)
    shares = sum(prefix + k in known for k in shorter) / len(shorter) if prefix else 0.0
    return prefix if shares > 0.9 else ""


def shape_words(known: KnownError) -> dict[str, str]:
    """Return both shapes of a tensor, and what their difference means."""
    saved, current = known.shape("saved"), known.shape("current")
    difference = "different width"
    if len(saved) != len(current):
        difference = ""
    elif known["position"]:
        difference = "different number of positions"
    elif saved[1:] == current[1:] and saved:
        rows = "rows (words)" if known["word"] else "outputs (classes)"
        difference = f"{saved[0]} against {current[0]} {rows}"
    return {"saved": str(list(saved)), "current": str(list(current)), "difference": difference}


def is_load(known: KnownError) -> bool:
    """Tell whether the user's code loads a file, rather than a worker reading its pipe."""
    frames = known.failure.frames
    if known.kind != "pickle":
        return True
    if any("multiprocessing" in f.file for f in frames) or not own_frames(known.failure):
        return False
    return any(w in f"{f.code} {f.function} {f.file}" for f in frames for w in LOADS)
