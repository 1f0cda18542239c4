from traindx.analysis.errors.checkpoint_messages import UNREADABLE_ARCHIVE, is_load
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("corrupt-checkpoint", "disk-full"))
def check(run: Run) -> Findings:
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
    yield from findings(run, UNREADABLE_ARCHIVE, when=is_load)


FIRES = {
    "a zip without its end": failed(
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
        "directory",
        "ckpt = torch.load(path)",
    ),
    "an empty file": failed("EOFError: Ran out of input", "ckpt = torch.load(path)"),
    "a pointer": failed(
        "_pickle.UnpicklingError: invalid load key, 'v'.", "ckpt = torch.load(path)"
    ),
}

SILENT = {
    "near miss: a worker lost its pipe": failed("EOFError: Ran out of input"),
    "near miss: a refused class": failed(
        "_pickle.UnpicklingError: Weights only load failed.", "ckpt = torch.load(path)"
    ),
    "another error": failed("KeyError: 'label'"),
}
