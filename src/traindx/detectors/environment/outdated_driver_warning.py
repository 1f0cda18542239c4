import re

from traindx.examples import decay, failed, logged
from traindx.model.findings import cite_event
from traindx.model.run import Event
from traindx.registry import Findings, Run, detector, finding

TOO_OLD = re.compile(
    r"(?i)NVIDIA driver on your system is too old|CUDA driver version is insufficient"
    r"|driver .{0,40}too old .{0,20}CUDA"
)
BY_HAND = frozenset({"KeyboardInterrupt", "SystemExit"})


@detector(needs=("events",), suggests=("version-mismatch",))
def check(run: Run) -> Findings:
    """A warning says that the driver is too old for this build, so the CPU computes.

    ## What it detects
    torch's warning at CUDA's initialisation that the driver is older than the build needs, in a run
    that did not end by an error of its own.

    ## Why it matters
    Nothing fails: `torch.cuda.is_available()` is false, the run goes to the CPU and takes a hundred
    times as long.

    ## What to do
    Update the driver, or install a build of torch for the CUDA version that `nvidia-smi` prints.

    ## When it is wrong
    A run that is meant for the CPU warns as well.
    """
    if any(f.type not in BY_HAND for f in run.failures):
        return
    for event in run.events:
        if event.kind == "warning" and TOO_OLD.search(event.text):
            yield finding(
                "The driver is too old for this build of torch, so the CPU computes",
                "version-mismatch",
                cite_event(event),
            )
            return


_WARNING = Event(
    "warning",
    "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version "
    "11040).",
    "train.log",
    "line 1",
)

FIRES = {"at the start": logged(loss_train=decay(20), events=[_WARNING])}

SILENT = {
    "near miss: another error ended the run": logged(
        loss_train=decay(20),
        events=[_WARNING],
        failures=failed("RuntimeError: mat1 and mat2 shapes cannot be multiplied").failures,
    ),
    "another warning": logged(
        loss_train=decay(20), events=[Event("warning", "UserWarning: lr_scheduler", "train.log")]
    ),
}
