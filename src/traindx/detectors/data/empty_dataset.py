"""A loader was made over no examples."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.failures import own_frames
from traindx.model import Failure, Frame, Run, make_run
from traindx.registry import detector
from traindx.source.errors import culprit_frame, explain, make_failed_run, match_root

MESSAGE = re.compile(
    r"num_samples should be a positive integer value, but got num_samples=(0)"
    r"|(?:dataset|train_dataset|samples?).{0,20}(?:is|are) empty|integer modulo by zero|empty range"
    r"|With n_samples=(0)|Found array with (0) sample|Total length of sampler.{0,20}(0)"
)
DIVISION = re.compile(r"^(?:float )?division(?: or modulo)? by zero")
# what a pass over the batches was to collect
JOINED = re.compile(
    r"expected a non-empty list of Tensors|expects a non-empty TensorList"
    r"|need at least one array to (?:concatenate|stack)"
)
# the counter of a loop that never ran
UNBOUND = re.compile(
    r"^(?:local variable '(\w+)' referenced before assignment|cannot access local variable '(\w+)')"
)
TRAINING = re.compile(r"\btrain(?=_|\b|ing|set|load|data)", re.IGNORECASE)
WORDS = re.compile(r"""(["']).*?\1""")  # what is printed says "before training" ...
FIELD = re.compile(r"\{([^{}]*)\}")  # ... and what is evaluated for it stands in braces
HELD_OUT = re.compile(r"\b(?:val|valid|validation|test|eval|dev)(?=_|\b)", re.IGNORECASE)


@detector(needs=("failure",), suggests=("api-misuse", "empty-validation"))
def check(run: Run) -> Iterator[Finding]:
    """A data loader is made over a dataset without examples.

    ## What it detects
    "num_samples should be a positive integer value, but got num_samples=0", and a division by zero
    on a line that averages over a loader's length or a count of examples. Where training steps were
    taken before, the division is of held-out data. So is "torch.cat(): expected a non-empty list
    of Tensors" in what is called with such data. An average over `i + 1` batches whose `i` was
    never set says that the loop had none.

    ## Why it matters
    A wrong folder, a filter that drops everything, or a split that rounds down to nothing; without
    shuffling the same fault passes in silence and the epoch has no steps.

    ## What to do
    Assert `len(dataset) > 0` where the dataset is made, and look at the path and the split.

    ## When it is wrong
    A rank that gets no shard of a small dataset sees the same while the others do not.
    """
    hit = match_root(run, MESSAGE, DIVISION, JOINED, UNBOUND)
    if hit is None:
        return
    failure, found = hit
    code = _code(run, failure)
    if found.re is UNBOUND and not re.search(rf"/=? ?\(?{found[1] or found[2]} ?\+ ?1\b", code):
        return
    if found.re is DIVISION and not re.search(
        r"/=? ?(?:len\(|\w*(?:total|count|num|n_|samples|seen))", code
    ):
        return
    if found.re is JOINED and not _is_held_out(failure):
        return  # any list may be empty
    is_averaging = found.re is DIVISION and run.has("loss") and "train" not in code
    is_held_out = _is_held_out(failure) or is_averaging
    what = "The held-out dataset" if is_held_out else "The dataset"
    cause = "empty-validation" if is_held_out else "api-misuse"
    is_unseen = found.re in (JOINED, UNBOUND)
    claim = f"{what} {'gave no batch' if is_unseen else 'has 0 examples'}"
    yield explain(run, failure, claim, suggests={cause: Strength.STRONG})


def _is_held_out(failure: Failure) -> bool:
    """Tell whether the innermost line that speaks of training or of held-out data means these."""
    for frame in reversed(own_frames(failure)):
        text = f"{frame.code} {frame.function}"
        text = WORDS.sub(lambda told: " ".join(FIELD.findall(told[0])), text)
        is_held_out, is_training = HELD_OUT.search(text), TRAINING.search(text)
        if is_held_out or is_training:
            return not is_training
    return False


def _code(run: Run, failure: Failure) -> str:
    frame = culprit_frame(run, failure)
    return f"{frame.code} {frame.function}" if frame is not None else ""


_ERROR = "ValueError: num_samples should be a positive integer value, but got num_samples=0"

_CALLED = Failure(
    "ZeroDivisionError",
    "division by zero",
    "train.log",
    "line 14",
    (
        Frame("train.py", 88, "main", "top1 = match_views(encoder, val_loader)"),
        Frame("train.py", 57, "match_views", "return hits / count"),
    ),
)

FIRES = {
    "a loop that never ran": make_failed_run(
        "UnboundLocalError: local variable 'i' referenced before assignment",
        "epoch_loss = epoch_loss / (i + 1)",
    ),
    "nothing to join": make_failed_run(
        "RuntimeError: torch.cat(): expected a non-empty list of Tensors",
        "val_predictions = torch.cat(outputs)",
    ),
    "divided in place": make_failed_run(
        "ZeroDivisionError: division by zero", "test_loss /= len(test_loader.dataset)"
    ),
    "a caller hands over the held-out data": make_run(failures=[_CALLED]),
    "training data": make_failed_run(_ERROR, "loader = DataLoader(train_set, shuffle=True)"),
    "validation data": make_failed_run(_ERROR, "val_loader = DataLoader(val_set, shuffle=True)"),
    "an average over nothing": make_failed_run(
        "ZeroDivisionError: division by zero", "return total_loss / len(val_loader)"
    ),
}

SILENT = {
    "near miss: a name that only a branch sets": make_failed_run(
        "UnboundLocalError: local variable 'loss' referenced before assignment", "loss.backward()"
    ),
    "near miss: some other list": make_failed_run(
        "RuntimeError: torch.cat(): expected a non-empty list of Tensors", "x = torch.cat(parts)"
    ),
    "near miss: another division": make_failed_run(
        "ZeroDivisionError: division by zero", "scale = 1 / (a - b)"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
