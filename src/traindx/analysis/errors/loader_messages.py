"""What data loaders and their workers say."""

from __future__ import annotations

from traindx.analysis.errors.messages import Message, Table

DEAD_WORKER: Table = (
    Message(
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: Killed",
        "Data loader worker {pid} was killed by the host (SIGKILL)",
        strong="host-memory-growth",
        weak="worker-crash",
    ),
    Message(
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (?!Bus error)"
        r"(?P<signal>\w+(?: \w+)*)",
        "Data loader worker {pid} died of a signal: {signal}",
        strong="worker-crash",
    ),
    Message(
        r"DataLoader worker \(pid\(?s?\)? (?P<pid>\d+(?:, \d+)*),?\s*\) exited unexpectedly"
        r"(?: with exit code (?P<code>-?\d+))?",
        "Data loader worker {pid} is gone[[ with exit code {code}]] and left no message",
        strong="worker-crash",
        weak="host-memory-growth",
    ),
    Message(
        r"DataLoader timed out after (?P<seconds>\d+(?:\.\d+)?) seconds",
        "No worker gave a batch within {seconds} seconds: one hangs or is too slow",
        strong="worker-crash",
    ),
)
_EMPTY = "{what} has 0 examples"
_NO_BATCH = "{what} gave no batch"
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
        "[[Field {field}||A field of the batch]] is not padded to one length: {why}",
        strong="api-misuse",
    ),
)
TEXTS_IN_BATCH: Table = (Message(r"too many dimensions 'str'"),)
UNBATCHABLE_ITEMS: Table = (
    Message(
        r"batch must contain [\w, ]+; found <class 'NoneType'>",
        "The dataset returns None, which no batch can be made of",
        strong="api-misuse",
    ),
    Message(
        r"batch must contain [\w, ]+; found <class '(?:\w+\.)*(?P<kind>\w+)'>",
        "The dataset returns a {kind}, which no batch can be made of",
        strong="api-misuse",
    ),
    Message(
        r"expected sequence of length (?P<first>\d+) at dim \d+ \(got (?P<second>\d+)\)",
        "Lists of length {first} and {second} are to be one tensor",
        strong="shape-mismatch",
        weak="api-misuse",
    ),
    Message(
        r"array has an inhomogeneous shape after \d+ dimensions",
        "Arrays or lists of unequal shape are to be one array",
        strong="api-misuse",
    ),
    Message(
        r"Trying to resize storage that is not resizable",
        "A worker cannot stack its examples: their sizes differ",
        strong="shape-mismatch",
        weak="api-misuse",
        kind="in a worker",
    ),
    Message(
        r"Length of all samples has to be greater than 0",
        "A sequence of length 0 is packed: an example is empty",
        strong="api-misuse",
    ),
)
_UNPICKLABLE = "What a worker is to get, {name} cannot be pickled"
UNPICKLABLE: Table = (
    Message(
        r"An attempt has been made to start a new process before the\s+current process has finished"
        r" its bootstrapping phase|freeze_support\(\)",
        'Workers start the script again: it has no guard if __name__ == "__main__"',
    ),
    Message(
        r"Cannot re-initialize CUDA in forked subprocess",
        "CUDA is used in a forked worker: the dataset makes or moves tensors to the GPU",
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
