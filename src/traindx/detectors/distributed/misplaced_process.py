"""A process was not set up for its rank: no group, or the wrong GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

GROUP = re.compile(r"Default process group has not been initialized")
TWICE = re.compile(r"trying to initialize the default process group twice")
DUPLICATE = re.compile(
    r"Duplicate GPU detected ?: ?rank (\d+) and rank (\d+) both on (?:CUDA )?device (\w+)"
)
ORDINAL = re.compile(r"invalid device ordinal|Invalid device id|device >= 0 && device < num_gpus")
ABSENT = re.compile(
    r"No CUDA GPUs are available|Torch not compiled with CUDA enabled|Found no NVIDIA driver"
    r"|no CUDA-capable device is detected"
)


@detector(needs=("failure",), suggests=("api-misuse", "version-mismatch"))
def check(run: Run) -> Iterator[Finding]:
    """A process uses a process group or a GPU that it does not have.

    ## What it detects
    "Default process group has not been initialized", "Duplicate GPU detected", "invalid device
    ordinal", and a GPU that is asked for where there is none.

    ## Why it matters
    Each rank must take the GPU of its local rank before the first collective.

    ## What to do
    Start with torchrun, call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` and then
    `init_process_group`; start no more processes than there are GPUs.

    ## When it is wrong
    CUDA_VISIBLE_DEVICES may hide GPUs that the machine has.
    """
    hit = match_root(run, GROUP, TWICE, DUPLICATE, ORDINAL, ABSENT)
    if hit is None:
        return
    failure, found = hit
    cause = "api-misuse"
    if found.re is GROUP:
        claim = "A process group is used before init_process_group, or without a launcher"
    elif found.re is TWICE:
        claim = "The process group is initialised twice"
    elif found.re is DUPLICATE:
        claim = f"Ranks {found[1]} and {found[2]} are both on GPU {found[3]}: set_device is missing"
    elif found.re is ORDINAL:
        claim = "A GPU number is used that this process does not see"
    elif "compiled" in found[0]:
        claim, cause = "This torch is a CPU build, and CUDA is asked for", "version-mismatch"
    else:
        claim = "A GPU is asked for, and this process sees none"
    yield explain(run, failure, claim, shows=cause)


FIRES = {
    "no group": make_failed_run(
        "ValueError: Default process group has not been initialized, please make sure to call "
        "init_process_group."
    ),
    "one GPU for two": make_failed_run(
        "torch.distributed.DistBackendError: NCCL error: invalid usage\nDuplicate GPU detected : "
        "rank 0 and rank 1 both on CUDA device 1a000"
    ),
    "too many processes": make_failed_run("RuntimeError: CUDA error: invalid device ordinal"),
    "a CPU build": make_failed_run("AssertionError: Torch not compiled with CUDA enabled"),
}

SILENT = {
    "near miss: a driver that is too old": make_failed_run(
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
