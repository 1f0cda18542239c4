from traindx.analysis.errors.checkpoint_messages import REFUSED_LOAD
from traindx.analysis.errors.messages import findings
from traindx.analysis.errors.written_calls import unmapped_load
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("unsafe-checkpoint", "corrupt-checkpoint", "api-misuse"))
def check(run: Run) -> Findings:
    """`torch.load` refuses a file's contents, or cannot place them on a device.

    ## What it detects
    "Weights only load failed" with the global that was not allowed, files that are not checkpoints,
    and "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False".

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
    yield from findings(run, REFUSED_LOAD, blame=unmapped_load)


_CODE = "state = torch.load('m.pt')"

FIRES = {
    "a class of the user's own": failed(
        "_pickle.UnpicklingError: Weights only load failed.\n\tWeightsUnpickler error: Unsupported "
        "global: GLOBAL __main__.Net was not an allowed global by default.",
        _CODE,
    ),
    "code": failed(
        "_pickle.UnpicklingError: Weights only load failed.\n\tWeightsUnpickler error: Unsupported "
        "global: GLOBAL posix.system was not an allowed global by default."
    ),
    "no GPU here": failed(
        "RuntimeError: Attempting to deserialize object on a CUDA device but "
        "torch.cuda.is_available() is False.",
        _CODE,
        sources={"t.py": f"import torch\n{_CODE}\n"},
    ),
}

SILENT = {
    "near miss: a truncated file": failed(
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
        "directory"
    ),
    "another error": failed("KeyError: 'label'"),
}
