"""What loading and saving say: files that are refused, cut off, or of another model."""

from __future__ import annotations

import re

from traindx.analysis.errors.messages import Message, Table

_REFUSED = (
    r"(?:Unsupported (?:global: GLOBAL|class)|Trying to (?:load unsupported GLOBAL|call reduce for "
    r"unrecognized function)) "
)
_ALLOWED = "The checkpoint holds a {name}, which weights_only does not load unless it is allowed"
_NO_CHECKPOINT = "The file is no checkpoint"
_QUOTED = re.compile(r'"([^"]+)"')

REFUSED_LOAD: Table = (
    Message(
        r"Attempting to deserialize object on (?:a )?(?:CUDA )?device(?: (?P<number>\d+))?",
        "The checkpoint's tensors were saved from [[GPU {number}||a GPU]] that this machine lacks",
        shows="api-misuse",
        kind="device",
    ),
    Message(
        _REFUSED + r"(?P<name>(?:os|posix|nt|subprocess|sys|builtins|__builtin__|shutil|socket"
        r"|runpy|webbrowser|pty|ctypes)(?:\.\w+)+)",
        "The checkpoint would call {name} on loading: it runs code and was refused",
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
            f"{_NO_CHECKPOINT}: it looks like {what}",
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
        "The checkpoint holds more than weights, and torch.load refuses it",
        strong="unsafe-checkpoint",
        weak="api-misuse",
    ),
)  # fmt: skip
UNMATCHED_KEYS: Table = (
    Message(
        r"Error\(s\) in loading state_dict for (?P<model>\w+)",
        "Of the checkpoint's keys, {missing} keys of {model} are missing and {unexpected} are "
        "unknown{reason}",
        shows="state-dict-key-mismatch",
    ),
)
MISSING_KEYS: Table = (Message(r"Missing key\(s\) in state_dict: (?P<keys>.+)"),)
UNEXPECTED_KEYS: Table = (Message(r"Unexpected key\(s\) in state_dict: (?P<keys>.+)"),)


def quoted(text: str) -> list[str]:
    """Return the words that stand in double quotes."""
    return _QUOTED.findall(text)


_SIZE = r"(?:torch\.Size\(\[[\d, ]*\]\)|\S+)"
_SHAPES = (  # a terminal may have wrapped it
    rf":\s+copying\s+a\s+param(?:eter)?\s+with\s+shape\s+(?P<saved>{_SIZE})\s+from\s+checkpoint,\s+"
    rf"the\s+shape\s+in\s+current\s+model\s+is\s+(?P<current>{_SIZE})"
)
_STATE = "The saved optimizer state has another number of {what} than this optimizer"
MISMATCHED_TENSOR = Message(
    r"size\s+mismatch\s+for\s+(?P<name>(?:(?=[\w.]*(?P<position>(?i:pos)))"
    r"|(?=[\w.]*(?P<word>(?i:embed|wte|tok|vocab|lm_head)))|)[\w.]+)" + _SHAPES,
    "The tensor {name} is {saved} in the file and {current} in the model[[: {difference}]]",
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
_OTHER_FILE = "A saved file is empty, cut off or of another kind"
UNREADABLE_ARCHIVE: Table = (
    Message(
        r"PytorchStreamWriter failed|write\(\): fd \d+ failed"
        r"|inline_container\.cc.{0,40}unexpected pos \d+ vs \d+",
        "Writing a checkpoint failed half-way: the file that it leaves is not whole",
        strong="disk-full",
        weak="corrupt-checkpoint",
    ),
    Message(
        r"unexpected EOF, expected (?P<bytes>\d+)|PytorchStreamReader failed"
        r"|failed finding central directory|[Ii]nvalid magic number|not a ZIP archive"
        r"|[Ii]nvalid header or archive is corrupted|file in archive is not in a subdirectory"
        r"|MetadataIncompleteBuffer|HeaderTooLarge|storage has wrong (?:byte )?size"
        r"|unexpected pos \d+ vs \d+",
        "A checkpoint file ends or breaks off before its end[[, {bytes} bytes early]]",
        shows="corrupt-checkpoint",
    ),
    Message(
        r"invalid load key, 'v'",
        _OTHER_FILE + ": it is a git-lfs pointer",
        strong="corrupt-checkpoint",
        types="EOFError UnpicklingError",
        kind="pickle",
    ),
    Message(
        r"invalid load key, '<'",
        _OTHER_FILE + ": it is a page of HTML",
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
