"""A library checked what it was given, and refused it in so many words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.failures import own_frames
from traindx.model import Failure, Frame, Run, make_run
from traindx.registry import detector
from traindx.source.errors import explain, last_burst, make_failed_run, root_failure

LOSS = re.compile(
    r"did not return a loss from the inputs, only the following keys: ([\w, ]+?)\. For reference, "
    r"the inputs it received are ([\w, ]+)"
)
COLUMNS = re.compile(
    r"No columns in the dataset match the model's forward method.{0,120}ignored: \[?([\w, ]+)",
    re.DOTALL,
)
PAD = re.compile(
    r"tokenizer does not have a padding token|(?:if|since) no padding token is defined"
)
RETURNED = re.compile(r"`?training_step`? returns a dict, the 'loss' key needs to be present")
# a check of values and not of how something is called: other rules know what they mean
VALUES = re.compile(
    r"\bnan\b|\binf(?:inity|inite)?\b|non-?finite|constraint|memory|out of bounds|out of range"
    r"|No such file|does not exist|not found|requires? .{0,40}(?:installed|version)|pip install"
    r"|num_samples|empty parameter|\bCUDA\b|\bNCCL\b|state_dict|worker|timed? ?out",
    re.IGNORECASE,
)
TEXTS = re.compile(r"TextEncodeInput must be|input must be of type `?str`?")
SCHEDULER = re.compile(r"provided lr scheduler .{0,60}doesn't follow PyTorch's LRScheduler API")
TARGETS = re.compile(r"Classification metrics can't handle a mix of ([\w-]+) and ([\w-]+) targets")
MONITOR = re.compile(
    r"(?:conditioned on metric|ModelCheckpoint\(monitor=)\W{0,3}([\w/.-]+)\W{1,4}.{0,20}"
    r"(?:which is not available|not found)"
)
ROWS = re.compile(r"Column \d+ named (\w+) expected length (\d+) but got length (\d+)")
CONFIGURED = "MisconfigurationException"  # Lightning's word for it
REFUSING = frozenset(
    {"ValueError", "TypeError", "AssertionError", "RuntimeError", "NotImplementedError", CONFIGURED}
)
CHECK = re.compile(r"raise [\w.]*(?:Error|Exception)\(|assert ")
# where an object is made: what it is made of is refused before any data are seen
MAKING = frozenset({"__init__", "__post_init__", "add_param_group"})


@detector(needs=("failure",), suggests=("api-misuse", "version-mismatch"))
def check(run: Run) -> Iterator[Finding]:
    """A library refuses what it was given.

    ## What it detects
    "The model did not return a loss from the inputs": no column is called `labels`, or the model
    has no head. "No columns in the dataset match the model's forward method", a tokenizer without
    a padding token, a `training_step` without a loss, a metric that is monitored and not logged,
    scores where a metric wants classes. Of other errors, as a candidate only: a
    ValueError, TypeError or the like that a library raises by a check of its own; with more
    certainty where it refuses to make an object of the arguments, as optimizers and loaders do.

    ## Why it matters
    The traceback ends deep in a library, while the fault lies in the call, often many lines up:
    the message says what was wanted.

    ## What to do
    Read the last line, then the last frame in your own code, and compare with the library's
    documentation for the installed version.

    ## When it is wrong
    A library that checks values rather than calls (a loss that is NaN, a file that is missing) is
    left to other rules; a check that is a bug of the library's own cannot be told apart.
    """
    failure = root_failure(run)
    if failure is None:
        return
    claim = _known(failure)
    if claim is not None:
        yield explain(run, failure, claim, suggests={"api-misuse": Strength.STRONG})
    elif failure.type.rsplit(".", 1)[-1] == CONFIGURED:
        yield _misconfigured(run, failure)
    elif _is_refused(run, failure):
        named = failure.frames[-1].file.replace("\\", "/").rsplit("-packages/", 1)[-1]
        claim = f"The library {named.split('/', 1)[0]} refuses what it was given"
        yield explain(run, failure, claim, suggests={"api-misuse": _strength(failure)})


def _misconfigured(run: Run, failure: Failure) -> Finding:
    """Lightning's own word says what it is; of what it does not know, another version may."""
    said = failure.message.split("\n", 1)[0].split(". ", 1)[0][:160].rstrip(".")
    guesses = {"api-misuse": Strength.STRONG}
    if SCHEDULER.search(failure.message):  # torch 2.0 gave its schedulers another parent
        guesses = {"version-mismatch": Strength.STRONG, "api-misuse": Strength.MODERATE}
    return explain(run, failure, f"Lightning refuses how it is set up: {said}", suggests=guesses)


def _strength(failure: Failure) -> Strength:
    is_made = failure.frames[-1].function.rsplit(".", 1)[-1] in MAKING
    return Strength.STRONG if is_made else Strength.MODERATE


def _known(failure: Failure) -> str | None:
    message = failure.message
    if (found := LOSS.search(message)) is not None:
        has_labels = any("label" in n or "position" in n for n in found[2].split(","))
        why = "it has no head for a task" if has_labels else "the batch has no labels"
        return f"The model returns {found[1]} and no loss: {why} (it got {found[2]})"
    if (found := COLUMNS.search(message)) is not None:
        return f"The model takes none of the columns of the dataset: {found[1].strip()}"
    if PAD.search(message):
        return "Sequences are to be padded, and no padding token is set"
    if TEXTS.search(message):
        return "A tokenizer gets something that is no text: a number, None or a column as a whole"
    if (found := ROWS.search(message)) is not None:
        return (
            f"A function for `map` returns {found[3]} rows of {found[1]} beside {found[2]} of the "
            "other columns: every column it returns, or leaves as it is, must have as many"
        )
    if (found := TARGETS.search(message)) is not None:
        return (
            f"A metric for classes gets {found[1]} labels and {found[2]} predictions: scores have "
            "to be turned into classes first, by a threshold or argmax"
        )
    if (found := MONITOR.search(message)) is not None:
        return f"The metric {found[1]} is monitored, and nothing logs it under that name"
    if RETURNED.search(message):
        return "training_step returns a dict without a loss"
    return None


def _is_refused(run: Run, failure: Failure) -> bool:
    """Tell whether the error is a library's own check of what the user's code called it with."""
    last = failure.frames[-1:]
    if (
        not last
        or failure.type.rsplit(".", 1)[-1] not in REFUSING
        or VALUES.search(failure.message)
    ):
        return False
    if not any(map(own_frames, last_burst(run))) or last[0] in own_frames(failure):
        return False
    return CHECK.match(last[0].code) is not None


def _refused(message: str, code: str, file: str) -> Run:
    own = Frame("train.py", 31, "<module>", "scheduler = make(optimizer)")
    inner = Frame(file, 88, "__init__", code)
    return make_run(failures=[Failure("ValueError", message, "train.log", "line 90", (own, inner))])


_SITE = "/usr/lib/python3/site-packages/torch/optim/lr_scheduler.py"

FIRES = {
    "a batch without labels": make_failed_run(
        "ValueError: The model did not return a loss from the inputs, only the following keys: "
        "logits. For reference, the inputs it received are input_ids,attention_mask.",
        "trainer.train()",
    ),
    "a tokenizer without padding": make_failed_run(
        "ValueError: Cannot handle batch sizes > 1 if no padding token is defined.",
        "trainer.train()",
    ),
    "a metric that is monitored and not logged": make_failed_run(
        "pytorch_lightning.utilities.exceptions.MisconfigurationException: ModelCheckpoint(monitor="
        "'val_f1') not found in the returned metrics: ['train_loss']."
    ),
    "rows that do not add up": make_failed_run(
        "pyarrow.lib.ArrowInvalid: Column 1 named input_ids expected length 1000 but got length 709"
    ),
    "a check of a library": _refused(
        "Expected float between 0 and 1 pct_start, but got 3", "raise ValueError(", _SITE
    ),
}

SILENT = {
    "near miss: the program's own check": _refused(
        "a batch is odd", "raise ValueError(", "data.py"
    ),
    "near miss: a check of values": _refused(
        "Input contains NaN, infinity or a value too large", "raise ValueError(msg)", _SITE
    ),
    "another error": make_failed_run("RuntimeError: CUDA out of memory.", "loss.backward()"),
}
