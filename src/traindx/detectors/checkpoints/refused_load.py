"""torch.load refused a file, or could not place what it read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source.errors import Culprit, explain, make_failed_run, match_root, site_of
from traindx.source.module import argument
from traindx.source.patches import Edit, diff

REFUSED = re.compile(
    r"Unsupported (?:global: GLOBAL|class) ([\w.]+)|Trying to (?:load unsupported GLOBAL|call "
    r"reduce for unrecognized function) ([\w.]+)"
)
UNREADABLE = re.compile(r"Unsupported operand (\d+)|Please file an issue with the following")
BLOCKED = re.compile(r"Weights only load failed")  # the words for a module that torch blocks
DEVICE = re.compile(r"Attempting to deserialize object on (?:a )?(?:CUDA )?device(?: (\d+))?")
HARMFUL = re.compile(
    r"^(?:os|posix|nt|subprocess|sys|builtins|__builtin__|shutil|socket|runpy|webbrowser|pty|ctypes)\."
)
# settings and numbers beside the weights; a class of torch is a layer of a model saved whole
DATA_TYPES = ("numpy", "argparse", "collections", "omegaconf", "pathlib")
TEXT_BYTES = {118: "a git-lfs pointer", 60: "an HTML page", 123: "JSON text", 10: "text"}


@detector(needs=("failure",), suggests=("unsafe-checkpoint", "corrupt-checkpoint", "api-misuse"))
def check(run: Run) -> Iterator[Finding]:
    """`torch.load` refuses a file's contents, or cannot place them on a device.

    ## What it detects
    "Weights only load failed" with the global that was not allowed, files that are no checkpoint at
    all, and "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is
    False".

    ## Why it matters
    From torch 2.6 on only tensors and plain containers are loaded by default, because a pickle can
    run code; the name of the refused global says whether the file is dangerous or just richer.

    ## What to do
    Allow exactly the named class with `torch.serialization.safe_globals`, or save a state dict;
    `weights_only=False` only for files of your own. For a missing device give
    `map_location="cpu"`.

    ## When it is wrong
    A name in `__main__` is a class of the script that saved the file, dangerous or not.
    """
    hit = match_root(run, DEVICE, REFUSED, UNREADABLE, BLOCKED)
    if hit is None:
        return
    failure, found = hit
    if found.re is DEVICE:
        where = f"GPU {found[1]}" if found[1] else "a GPU"
        claim = f"The checkpoint's tensors were saved from {where} that this machine lacks"
        culprit = _mapped(run, failure)
        yield explain(run, failure, claim, shows="api-misuse", culprit=culprit)
    elif found.re is REFUSED:
        yield _refused(run, failure, found[1] or found[2])
    elif found.re is BLOCKED:
        claim = "The checkpoint holds more than weights, and torch.load refuses it"
        guesses = {"unsafe-checkpoint": Strength.STRONG, "api-misuse": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)
    else:
        what = TEXT_BYTES.get(int(found[1])) if found[1] else None
        claim = f"The file is no checkpoint{f': it looks like {what}' if what else ''}"
        yield explain(run, failure, claim, suggests={"corrupt-checkpoint": Strength.STRONG})


def _refused(run: Run, failure: Failure, name: str) -> Finding:
    name = name.rstrip(".")
    if HARMFUL.match(name):
        claim = f"The checkpoint would call {name} on loading: it runs code and was refused"
        return explain(run, failure, claim, shows="unsafe-checkpoint")
    claim = f"The checkpoint holds a {name}, which weights_only does not load unless it is allowed"
    if name.split(".")[0] in DATA_TYPES:
        guesses = {"api-misuse": Strength.STRONG, "unsafe-checkpoint": Strength.MODERATE}
    else:  # a class of a program: the file is a pickle of whole objects, whose code would run
        guesses = {"unsafe-checkpoint": Strength.STRONG, "api-misuse": Strength.WEAK}
    return explain(run, failure, claim, suggests=guesses)


def _mapped(run: Run, failure: Failure) -> Culprit | None:
    site = site_of(run, failure)
    if site is None:
        return None
    for call, name in site.module.calls(site.node):
        if name == "torch.load" and argument(call, "map_location", 1) is None and call.args:
            end_line, end = call.end_lineno or call.lineno, (call.end_col_offset or 1) - 1
            patch = diff(site.module, Edit(end_line, end, end_line, end, ', map_location="cpu"'))
            says = f"`{ast.unparse(call)}` wants the device that the file was saved from"
            return Culprit(site.module, site.node, says, patch)
    return None


_CODE = "state = torch.load('m.pt')"

FIRES = {
    "a class of the user's own": make_failed_run(
        "_pickle.UnpicklingError: Weights only load failed.\n\tWeightsUnpickler error: Unsupported "
        "global: GLOBAL __main__.Net was not an allowed global by default.",
        _CODE,
    ),
    "code": make_failed_run(
        "_pickle.UnpicklingError: Weights only load failed.\n\tWeightsUnpickler error: Unsupported "
        "global: GLOBAL posix.system was not an allowed global by default."
    ),
    "no GPU here": make_failed_run(
        "RuntimeError: Attempting to deserialize object on a CUDA device but "
        "torch.cuda.is_available() is False.",
        _CODE,
        sources={"t.py": f"import torch\n{_CODE}\n"},
    ),
}

SILENT = {
    "near miss: a truncated file": make_failed_run(
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
        "directory"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
