from traindx.analysis.errors.call_messages import REFUSALS
from traindx.analysis.errors.culprits import explain
from traindx.analysis.errors.failing_lines import is_library_check, refusal_strength
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.errors.root_failure import root_failure
from traindx.examples import Frame, failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse", "version-mismatch"))
def check(run: Run) -> Findings:
    """A library rejects the arguments it was called with.

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
    left to other rules; a bug in the library's own check looks the same.
    """
    failure, known = root_failure(run), known_error(run, REFUSALS)
    if failure is None:
        return
    if known is not None:
        said = failure.message.split("\n", 1)[0].split(". ", 1)[0][:160].rstrip(".")
        yield finding(known, known.claim(said=said))
    elif is_library_check(run, failure):
        named = failure.frames[-1].file.replace("\\", "/").rsplit("-packages/", 1)[-1]
        claim = f"The library {named.split('/', 1)[0]} rejects the arguments it was called with"
        yield explain(run, failure, claim, suggests={"api-misuse": refusal_strength(failure)})


def _refused(message: str, code: str, file: str) -> Run:
    inner = Frame(file, 88, "__init__", code)
    call = "scheduler = make(optimizer)"
    return failed(f"ValueError: {message}", call, frames=(inner,))


_SITE = "/usr/lib/python3/site-packages/torch/optim/lr_scheduler.py"

FIRES = {
    "a batch without labels": failed(
        "ValueError: The model did not return a loss from the inputs, only the following keys: "
        "logits. For reference, the inputs it received are input_ids,attention_mask.",
        "trainer.train()",
    ),
    "a tokenizer without padding": failed(
        "ValueError: Cannot handle batch sizes > 1 if no padding token is defined.",
        "trainer.train()",
    ),
    "a metric that is monitored and not logged": failed(
        "pytorch_lightning.utilities.exceptions.MisconfigurationException: ModelCheckpoint(monitor="
        "'val_f1') not found in the returned metrics: ['train_loss']."
    ),
    "rows that do not add up": failed(
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
    "another error": failed("RuntimeError: CUDA out of memory.", "loss.backward()"),
}
