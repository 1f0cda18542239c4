from traindx.analysis.errors.messages import findings
from traindx.analysis.errors.process_group_messages import MISPLACED_PROCESS
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse", "version-mismatch"))
def check(run: Run) -> Findings:
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
    yield from findings(run, MISPLACED_PROCESS)


FIRES = {
    "no group": failed(
        "ValueError: Default process group has not been initialized, please make sure to call "
        "init_process_group."
    ),
    "one GPU for two": failed(
        "torch.distributed.DistBackendError: NCCL error: invalid usage\nDuplicate GPU detected : "
        "rank 0 and rank 1 both on CUDA device 1a000"
    ),
    "too many processes": failed("RuntimeError: CUDA error: invalid device ordinal"),
    "a CPU build": failed("AssertionError: Torch not compiled with CUDA enabled"),
}

SILENT = {
    "near miss: a driver that is too old": failed(
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version"
    ),
    "another error": failed("KeyError: 'label'"),
}
