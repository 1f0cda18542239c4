from traindx.analysis.errors.environment_messages import VERSIONS
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("version-mismatch", "api-misuse"))
def check(run: Run) -> Findings:
    """Software or driver versions do not fit each other.

    ## What it detects
    A driver that is too old, a GPU that this build of torch has no kernels for, undefined symbols
    and missing libraries, names that another version of a package does not have, functions whose
    own message says that they were removed, and packages that are not installed.

    ## Why it matters
    No change of the training code helps.

    ## What to do
    Install a build that fits: compare `nvidia-smi` with `torch.version.cuda`, and
    `torch.cuda.get_device_capability()` with `torch.cuda.get_arch_list()`.

    ## When it is wrong
    A file of your own that is called like a package (`torch.py`, `datasets.py`) gives "cannot
    import name" as well.
    """
    yield from findings(run, VERSIONS)


FIRES = {
    "an old driver": failed(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."
    ),
    "a new GPU": failed(
        "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    ),
    "a library": failed(
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
    ),
    "a function that is gone": failed(
        "RuntimeError: This function was deprecated since version 1.9 and is now removed. The "
        "default behavior has changed",
        "values, _ = torch.symeig(gram)",
    ),
    "an alias that is gone": failed(
        "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64`."
    ),
    "not installed": failed("ModuleNotFoundError: No module named 'einops'"),
}

SILENT = {
    "near miss: no GPU at all": failed("RuntimeError: No CUDA GPUs are available"),
    "near miss: a file was removed": failed(
        "RuntimeError: The shared cache was removed in another process"
    ),
    "another error": failed("KeyError: 'label'"),
}
