"""What data loaders and their workers say."""

from __future__ import annotations

from traindx.analysis.errors.messages import OTHERS, Message, Table

DEAD_WORKER: Table = (
    Message(r"Bus error", kind=OTHERS),  # of shared memory
    Message(
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: Killed",
        "DataLoader worker {pid} was killed with SIGKILL, most likely out of memory",
        strong="host-memory-growth",
        weak="worker-crash",
    ),
    Message(
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (?P<signal>\w+(?: \w+)*)",
        "DataLoader worker {pid} crashed: {signal}",
        strong="worker-crash",
    ),
    Message(
        r"DataLoader worker \(pid\(?s?\)? (?P<pid>\d+(?:, \d+)*),?\s*\) exited unexpectedly"
        r"(?: with exit code (?P<code>-?\d+))?",
        "DataLoader worker {pid} exited[[ with code {code}]] without a message",
        strong="worker-crash",
        weak="host-memory-growth",
    ),
    Message(
        r"DataLoader timed out after (?P<seconds>\d+(?:\.\d+)?) seconds",
        "The DataLoader timed out after {seconds} seconds: a worker hangs or is too slow",
        strong="worker-crash",
    ),
)
_EMPTY = "{what} has 0 examples"
_NO_BATCH = "{what} yields no batch"
EMPTY_DATASET: Table = (
    Message(
        r"num_samples should be a positive integer value, but got num_samples=0"
        r"|(?:dataset|train_dataset|samples?).{0,20}(?:is|are) empty|integer modulo by zero"
        r"|empty range|With n_samples=0|Found array with 0 sample|Total length of sampler.{0,20}0",
        _EMPTY,
    ),
    Message(r"^(?:float )?division(?: or modulo)? by zero", _EMPTY, kind="division"),
    # what a pass over the batches was to collect
    Message(
        r"expected a non-empty list of Tensors|expects a non-empty TensorList"
        r"|need at least one array to (?:concatenate|stack)",
        _NO_BATCH,
        kind="joined",
    ),
    # the counter of a loop that never ran
    Message(
        r"^(?:local variable '(?P<name>\w+)' referenced before assignment"
        r"|cannot access local variable '(?P<name2>\w+)')",
        _NO_BATCH,
        kind="unbound",
    ),
)
UNPADDED_FIELD: Table = (
    Message(
        r"(?s)Unable to create tensor, you should probably activate truncation and/or padding"
        r"(?:.{0,120}\(`(?P<field>\w+)` in this case\))?",
        "[[Field {field}||A field of the batch]] cannot become a tensor: {why}",
        strong="api-misuse",
    ),
)
TEXTS_IN_BATCH: Table = (Message(r"too many dimensions 'str'"),)
UNBATCHABLE_ITEMS: Table = (
    Message(
        r"batch must contain [\w, ]+; found <class 'NoneType'>",
        "The dataset returns None, which cannot be collated into a batch",
        strong="api-misuse",
    ),
    Message(
        r"batch must contain [\w, ]+; found <class '(?:\w+\.)*(?P<kind>\w+)'>",
        "The dataset returns a {kind}, which cannot be collated into a batch",
        strong="api-misuse",
    ),
    Message(
        r"expected sequence of length (?P<first>\d+) at dim \d+ \(got (?P<second>\d+)\)",
        "Lists of different lengths ({first} and {second}) cannot become one tensor",
        strong="shape-mismatch",
        weak="api-misuse",
    ),
    Message(
        r"array has an inhomogeneous shape after \d+ dimensions",
        "Arrays or lists of different shapes cannot become one array",
        strong="api-misuse",
    ),
    Message(
        r"Trying to resize storage that is not resizable",
        "A DataLoader worker cannot stack examples of different sizes",
        strong="shape-mismatch",
        weak="api-misuse",
        kind="in a worker",
    ),
    Message(
        r"Length of all samples has to be greater than 0",
        "An empty sequence (length 0) is packed",
        strong="api-misuse",
    ),
)
_UNPICKLABLE = "The object {name} cannot be pickled, so no DataLoader worker can get it"
UNPICKLABLE: Table = (
    Message(
        r"An attempt has been made to start a new process before the\s+current process has finished"
        r" its bootstrapping phase|freeze_support\(\)",
        'The script has no guard if __name__ == "__main__", so each worker runs it again',
    ),
    Message(
        r"Cannot re-initialize CUDA in forked subprocess",
        "CUDA is used in a forked worker; the dataset creates tensors on the GPU or moves them",
    ),
    Message(
        r"Can't pickle (?:local object )?(?:<function )?['<]?(?P<name>[\w.<>]+)"
        r"|cannot pickle '(?P<name2>[\w.]+)' object|Can't get local object '(?P<name3>[\w.<>]+)'"
        r"|can't pickle (?P<name4>[\w.]+) objects",
        _UNPICKLABLE,
        kind="pickle",
    ),
    Message(
        r"Can't get attribute '(?P<name>\w+)' on <module '__main__'", _UNPICKLABLE
    ),
)  # fmt: skip
