"""Driver, CUDA, torch or a library did not fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

DRIVER = re.compile(
    r"CUDA driver version is insufficient|NVIDIA driver on your system is too old \(found version "
    r"(\d+)\)|forward compatibility was attempted on non supported HW|unsupported display driver"
)
KERNEL = re.compile(
    r"no kernel image is available for execution|CUDA capability (sm_\d+) is not compatible"
    r"|invalid device function|unsupported PTX version"
)
LIBRARY = re.compile(
    r"undefined symbol: (\w+)|(lib[\w.+-]+\.so[\w.]*): cannot open shared object file"
    r"|version [`']([\w.]+)' not found|DLL load failed(?: while importing (\w+))?"
    r"|numpy\.dtype size changed|compiled using NumPy 1\.x|compiled against API version"
)
NAMED = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")
MODULE = re.compile(r"No module named '([\w.]+)'")
# libraries say it themselves: torch, NumPy 2, Lightning, transformers
REMOVED = re.compile(
    r"deprecated since version (?P<since>[\w.]+) and is now removed"
    r"|deprecated in v?(?P<old>\d[\w.]*)[^.\n]{0,60}(?:removed|no longer accessible)"
    r"|(?:was|were|is|are|has been|have been) removed (?:in|from|since|as of) (?:the )?"
    r"(?P<release>(?:version |v)?\d[\w.]*\w|(?:NumPy|Num[Pp]y|[Tt]orch|PyTorch|Lightning) [\d.]+\d)"
)
OPERATOR = re.compile(r"operator (torchvision::\w+) does not exist|Couldn't load custom C\+\+ ops")


@detector(needs=("failure",), suggests=("version-mismatch", "api-misuse"))
def check(run: Run) -> Iterator[Finding]:
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
    hit = match_root(run, DRIVER, KERNEL, LIBRARY, OPERATOR, REMOVED, NAMED, MODULE)
    if hit is None:
        return
    failure, found = hit
    claim = _words(found)
    if found.re in (NAMED, MODULE):
        guesses = {"version-mismatch": Strength.STRONG, "api-misuse": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)
    else:
        yield explain(run, failure, claim, shows="version-mismatch")


def _words(found: re.Match[str]) -> str:
    what = next((g for g in found.groups() if g), "")
    if found.re is DRIVER:
        return (
            f"The NVIDIA driver{f' ({what})' if what else ''} is older than this CUDA build needs"
        )
    if found.re is KERNEL:
        return f"This build of torch has no kernels for the GPU{f' ({what})' if what else ''}"
    if found.re is REMOVED:
        return f"The installed version no longer has what is called: {found[0]}"
    if found.re is OPERATOR:
        return "The installed torchvision was built for another torch"
    if found.re is LIBRARY:
        return f"A compiled library does not fit{f': {what}' if what else ''}"
    if found.re is NAMED:
        return f"The installed {found[2]} has no {found[1]}"
    return f"The package {what} is not installed in this environment"


FIRES = {
    "an old driver": make_failed_run(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."
    ),
    "a new GPU": make_failed_run(
        "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    ),
    "a library": make_failed_run(
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
    ),
    "a function that is gone": make_failed_run(
        "RuntimeError: This function was deprecated since version 1.9 and is now removed. The "
        "default behavior has changed",
        "values, _ = torch.symeig(gram)",
    ),
    "an alias that is gone": make_failed_run(
        "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64`."
    ),
    "not installed": make_failed_run("ModuleNotFoundError: No module named 'einops'"),
}

SILENT = {
    "near miss: no GPU at all": make_failed_run("RuntimeError: No CUDA GPUs are available"),
    "near miss: a file was removed": make_failed_run(
        "RuntimeError: The shared cache was removed in another process"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
