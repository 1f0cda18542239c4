"""A checkpoint could not be read to its end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.failures import own_frames
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, root_failure

ARCHIVE = re.compile(
    r"PytorchStreamReader failed|failed finding central directory|unexpected EOF, expected (\d+)"
    r"|[Ii]nvalid magic number|[Ii]nvalid header or archive is corrupted|not a ZIP archive"
    r"|file in archive is not in a subdirectory|MetadataIncompleteBuffer|HeaderTooLarge"
    r"|storage has wrong (?:byte )?size|PytorchStreamWriter failed|unexpected pos \d+ vs \d+"
    r"|write\(\): fd \d+ failed"
)
PICKLE = re.compile(r"^Ran out of input|invalid load key, '(.{1,6})'|pickle data was truncated|^$")
LOADS = re.compile(r"load|restore|resume|from_pretrained|serialization")
WRITING = re.compile(
    r"PytorchStreamWriter|write\(\): fd|inline_container\.cc.{0,40}(?:write|unexpected pos)"
)


@detector(needs=("failure",), suggests=("corrupt-checkpoint", "disk-full"))
def check(run: Run) -> Iterator[Finding]:
    """A checkpoint file ends early or does not unpack.

    ## What it detects
    "PytorchStreamReader failed reading zip archive", "unexpected EOF", "invalid magic number", "Ran
    out of input", "invalid load key" (`v` for a git-lfs pointer, `<` for an HTML page) and the same
    of safetensors; and a writer that failed, which leaves such a file behind.

    ## Why it matters
    The run that wrote it was killed, the disk was full, or a download stopped; nothing in the file
    can be trusted.

    ## What to do
    Resume from the one before, and write to a temporary name that is renamed when complete.

    ## When it is wrong
    "invalid magic number" also comes from opening another kind of file with `torch.load`.
    """
    failure = root_failure(run)
    if failure is None:
        return
    found = ARCHIVE.search(f"{failure.type}: {failure.message}")
    if found is not None and WRITING.search(failure.message):
        claim = "Writing a checkpoint failed half-way: the file that it leaves is not whole"
        guesses = {"disk-full": Strength.STRONG, "corrupt-checkpoint": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)
    elif found is not None:
        left = f", {found[1]} bytes early" if found[1] else ""
        claim = f"A checkpoint file ends or breaks off before its end{left}"
        yield explain(run, failure, claim, shows="corrupt-checkpoint")
    elif (key := _pickled(failure)) is not None:
        what = {"v": ": it is a git-lfs pointer", "<": ": it is a page of HTML"}.get(key, "")
        claim = f"A saved file is empty, cut off or of another kind{what}"
        yield explain(run, failure, claim, suggests={"corrupt-checkpoint": Strength.STRONG})


def _pickled(failure: Failure) -> str | None:
    """The first byte of what failed to unpickle, if a load of the user's was at work."""
    kind = failure.type.rsplit(".", 1)[-1]
    found = PICKLE.search(failure.message) if kind in ("EOFError", "UnpicklingError") else None
    if found is None or any("multiprocessing" in f.file for f in failure.frames):
        return None
    is_load = any(LOADS.search(f"{f.code} {f.function} {f.file}") for f in failure.frames)
    return (found[1] or "") if is_load and own_frames(failure) else None


FIRES = {
    "a zip without its end": make_failed_run(
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
        "directory",
        "ckpt = torch.load(path)",
    ),
    "an empty file": make_failed_run("EOFError: Ran out of input", "ckpt = torch.load(path)"),
    "a pointer": make_failed_run(
        "_pickle.UnpicklingError: invalid load key, 'v'.", "ckpt = torch.load(path)"
    ),
}

SILENT = {
    "near miss: a worker lost its pipe": make_failed_run("EOFError: Ran out of input"),
    "near miss: a refused class": make_failed_run(
        "_pickle.UnpicklingError: Weights only load failed.", "ckpt = torch.load(path)"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
